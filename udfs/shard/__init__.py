"""Core: the state of one (cluster, shard), and which of its groups are due."""
