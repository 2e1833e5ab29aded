"""Accumulators of the built-in aggregates, a file for each kind, and how results are made of them."""
