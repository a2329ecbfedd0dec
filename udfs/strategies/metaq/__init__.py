"""Core: MetaQ's strategies, one file each."""
