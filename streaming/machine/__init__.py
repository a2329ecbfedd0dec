"""Shell: files, locks, ports, clock and log of this machine."""
