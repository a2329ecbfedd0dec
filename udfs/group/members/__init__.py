"""Core: who a member is, how it is described, how it departed."""
