"""Tests: a mirror of the code, with simulated time and temporary folders."""
