"""Shell: the settings, and where each was set."""
