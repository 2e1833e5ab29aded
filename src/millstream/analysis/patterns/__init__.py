"""Sequence patterns: variables, conditions, star aggregates, and their typed form."""
