"""Dashboard: which requests are allowed, how often, and what browsers may do with the response (docs/security.md)."""
