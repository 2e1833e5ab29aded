"""Sequence patterns by their definition: every attempt, one after the other."""
