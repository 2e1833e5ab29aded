"""Millstream's own contestants."""
