"""Joins: windows that conditions imply, and queries in expressions as joins."""
