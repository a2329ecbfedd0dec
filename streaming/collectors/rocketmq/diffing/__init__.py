"""Shell: which events follow from two polls of RocketMQ."""
