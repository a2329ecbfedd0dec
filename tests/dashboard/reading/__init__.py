"""Tests that mirror `dashboard/reading`."""
