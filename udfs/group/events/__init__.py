"""Core: the changes that each kind of event, and time, makes in a group."""
