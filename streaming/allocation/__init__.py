"""Shell: input and output of the command `allocate`, and users' strategies."""
