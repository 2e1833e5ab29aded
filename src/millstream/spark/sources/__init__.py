"""Streams, files and changing tables as DataFrames with hidden columns."""
