"""Aggregates of OVER: frames over the log of a partition, slides, and ACTIVE EXPIRATION."""
