"""Simulated fleets through the monitor: every cause that the script made is found, none is invented."""
