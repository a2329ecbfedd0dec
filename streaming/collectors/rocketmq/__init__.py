"""Shell: a live RocketMQ cluster, 4.x or 5.x, watched over the remoting protocol. It only reads."""
