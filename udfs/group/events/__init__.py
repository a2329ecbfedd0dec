"""Core: what each kind of event, and time, changes in a group."""
