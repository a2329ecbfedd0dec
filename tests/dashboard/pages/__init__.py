"""Tests that mirror `dashboard/pages`."""
