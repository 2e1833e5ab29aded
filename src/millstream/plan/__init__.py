"""Logical plans: immutable nodes, the builder, and rewrite rules (a file each)."""
