"""Core: the remembered state of a group."""
