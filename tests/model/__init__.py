"""A reference model of the whole core, dumber than it, and random histories on which the two are compared."""
