"""Tests that mirror `dashboard/api`."""
