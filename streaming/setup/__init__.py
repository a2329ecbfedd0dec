"""Shell: preparations before the first run."""
