"""Dashboard: pages and API over the tables, read without Spark."""
