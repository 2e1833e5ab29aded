"""Emitters of values, expressions, functions and casts, and the writer that they share."""
