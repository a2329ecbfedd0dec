"""Shell: questions to the tables, answered without Spark; each answer is plain rows, times in epoch milliseconds."""
