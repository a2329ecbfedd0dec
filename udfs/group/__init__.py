"""Core: what a coordinator decides about one group."""
