"""Core: a coordinator's snapshots, records and polls become generations with causes."""
