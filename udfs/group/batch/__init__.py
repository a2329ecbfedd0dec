"""Core: one group in one batch: its due events, its output, its findings."""
