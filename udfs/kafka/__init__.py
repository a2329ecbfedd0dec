"""Core: what Kafka's records contain."""
