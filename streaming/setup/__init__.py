"""Shell: what happens before the first run."""
