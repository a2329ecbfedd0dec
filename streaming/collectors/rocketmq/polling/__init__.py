"""Shell: the schedule and content of requests to RocketMQ's brokers and members."""
