"""Recorded results of the real classes, and the strategies compared with them."""
