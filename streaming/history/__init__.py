"""What the tables have of a group's past, as events of the contract. No Spark."""
