"""Shell: how a live cluster is followed."""
