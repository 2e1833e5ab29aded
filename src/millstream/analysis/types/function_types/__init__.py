"""Calls of Spark's built-in functions: arguments against signatures, and the types of results."""
