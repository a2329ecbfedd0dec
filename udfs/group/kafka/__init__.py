"""Core: a coordinator's snapshots, records and polls turned into generations with causes."""
