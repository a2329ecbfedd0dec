"""Shell: what the command `allocate` reads and writes, and strategies of users."""
