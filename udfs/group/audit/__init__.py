"""Core: comparison of a reported with the recomputed assignment, and the likely reason for a difference."""
