"""Sequence patterns: their checked form, what follows from their conditions, and how they are searched."""
