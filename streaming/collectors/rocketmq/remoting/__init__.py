"""Shell: RocketMQ's remoting protocol."""
