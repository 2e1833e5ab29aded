"""Queries: names, FROM, windows, OVER, groups, aggregate calls, set operations."""
