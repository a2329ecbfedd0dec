"""Shell: a live Kafka cluster: its group records as a source, its metadata and clock by a collector, its rights."""
