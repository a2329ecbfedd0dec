"""The kit: real brokers and real members, started and stopped by the tests themselves."""
