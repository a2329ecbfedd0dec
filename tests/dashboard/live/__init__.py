"""Tests that mirror `dashboard/live`."""
