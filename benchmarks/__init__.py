"""Benchmarks beside the alternatives: ``make bench``."""
