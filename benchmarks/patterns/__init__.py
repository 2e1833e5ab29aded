"""Sequence patterns: the search, its state, and peers: ``make bench-patterns``."""
