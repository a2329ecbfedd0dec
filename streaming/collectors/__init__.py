"""Shell: collectors of live clusters."""
