"""Core: a group's state encoded as bytes, and as an event."""
