"""Core: the rebalance that follows from changes in a group, and its commit."""
