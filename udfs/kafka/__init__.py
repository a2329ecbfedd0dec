"""Core: decoding of Kafka's records."""
