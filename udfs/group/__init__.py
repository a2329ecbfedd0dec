"""Core: what the monitor decides about one group."""
