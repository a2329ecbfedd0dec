"""Dashboard: what pages, API and metrics ask the tables; each answer belongs to the tables' versions."""
