"""Dashboard: who may ask what, how often, and what browsers may do with the answer (docs/security.md)."""
