"""Dashboard: the ready questions as SQL, and their results."""
