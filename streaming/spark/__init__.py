"""Shell: how a session and a checkpoint start."""
