"""Core: the rebalance that follows from the changes of a group, and its commit."""
