"""Core: a group's state as bytes, and as an event."""
