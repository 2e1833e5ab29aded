"""Sequence patterns by definition: every attempt, one after the other."""
