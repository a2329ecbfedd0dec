"""Core: Kafka's assignors, one file each."""
