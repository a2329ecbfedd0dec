"""A reference model of the whole core, simpler than the core, and random histories on which the two are compared."""
