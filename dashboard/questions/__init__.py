"""Dashboard: the predefined questions as SQL, and their results."""
