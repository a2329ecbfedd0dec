"""Shell: questions to the tables, answered without Spark; answers are plain rows with times in epoch milliseconds."""
