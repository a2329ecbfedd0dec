"""Shell: which settings there are, and where each was set."""
