"""Accumulators of the built-in aggregates, a file for each kind, and the results made from them."""
