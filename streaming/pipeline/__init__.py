"""Shell: the stages of the query."""
