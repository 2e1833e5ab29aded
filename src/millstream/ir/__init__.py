"""Typed intermediate representation of aggregate bodies, expressions and sequence patterns."""
