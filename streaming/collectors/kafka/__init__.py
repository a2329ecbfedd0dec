"""Shell: a live Kafka cluster: its group records as a source, a collector for its metadata and clock, its
permissions."""
