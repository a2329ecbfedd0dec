"""Core: what one (cluster, shard) remembers, and which of its groups are due."""
