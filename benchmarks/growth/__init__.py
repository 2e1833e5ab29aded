"""Absence of growth: the cost of a row with its window and with the length of the stream, and errors."""
