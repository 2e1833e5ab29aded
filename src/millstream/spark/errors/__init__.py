"""Errors of Spark in the words of Millstream."""
