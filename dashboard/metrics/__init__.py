"""Dashboard: metrics of the tables for Prometheus, and whether the server works."""
