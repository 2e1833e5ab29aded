"""Sequence patterns: the search, what it keeps, and peers: ``make bench-patterns``."""
