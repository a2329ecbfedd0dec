"""Benchmarks: each figure is a ratio measured within one run, with medians."""
