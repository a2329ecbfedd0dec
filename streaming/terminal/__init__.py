"""Shell: output on a terminal."""
