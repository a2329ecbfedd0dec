"""Shell: what the Delta tables hold, and how they follow the journal."""
