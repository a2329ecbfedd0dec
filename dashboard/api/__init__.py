"""Dashboard: the API: JSON and CSV of what the pages show."""
