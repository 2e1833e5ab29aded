"""Spark sessions: embedded or the caller's, with functions, types and the class archive."""
