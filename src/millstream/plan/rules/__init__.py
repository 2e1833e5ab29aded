"""Rewrite rules: a file each with a function of its name, which returns a better node or the same."""
