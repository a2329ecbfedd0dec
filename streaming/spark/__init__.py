"""Shell: starts sessions and checkpoints."""
