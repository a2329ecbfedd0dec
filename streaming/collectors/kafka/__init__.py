"""Shell: a live Kafka cluster: its group records, a collector for metadata and clock, its permissions."""
