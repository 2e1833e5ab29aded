"""Rewrite rules: a file each, a function of the same name, from a node to a better one or to itself."""
