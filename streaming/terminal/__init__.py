"""Shell: what people see on a terminal."""
