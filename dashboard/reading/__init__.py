"""Dashboard: reads the tables for pages, API and metrics; each result belongs to the tables' versions."""
