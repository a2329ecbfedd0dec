"""Core: how a raw row becomes a packet."""
