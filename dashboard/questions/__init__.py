"""Dashboard: the questions that users ask most, as SQL, and their results."""
