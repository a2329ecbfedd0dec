"""Core: the target assignment, and what it means for each queue."""
