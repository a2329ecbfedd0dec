"""Tests that mirror `dashboard/security`."""
