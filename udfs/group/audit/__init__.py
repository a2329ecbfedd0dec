"""Core: a reported and the recomputed assignment compared, with the likely reason of a difference."""
