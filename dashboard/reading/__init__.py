"""Dashboard: what pages, API and metrics read from the tables; each result belongs to the tables' versions."""
