"""Dashboard: the pages."""
