"""Aggregates of the user's: the ESL paper's experiments, built-ins and peers: ``make bench-aggregates``."""
