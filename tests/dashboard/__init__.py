"""Tests that mirror `dashboard/`."""
