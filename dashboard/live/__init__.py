"""Dashboard: open pages follow the tables: one poller for all of them, and a stream of events for each."""
