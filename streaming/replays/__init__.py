"""Pasts of many groups, decided again as a Spark job of their own, into tables of their own."""
