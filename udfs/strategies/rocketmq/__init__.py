"""Core: RocketMQ's strategies, one file each."""
