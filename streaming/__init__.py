"""The shell: it may read clocks and touch the outside, and holds no rule of the domain."""
