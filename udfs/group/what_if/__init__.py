"""What a change would do to a group: its own strategy, on its own members, with the change made."""
