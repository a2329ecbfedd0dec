"""Shell: the content of the Delta tables, and how they follow the journal."""
