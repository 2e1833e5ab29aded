"""Matchers of sequence patterns, for one pattern or for several over the same tuples."""
