"""Core: a member's identity, description and departure."""
