"""Core: the identity of a member, its description, its departure."""
