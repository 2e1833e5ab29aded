"""Code generation for user-defined aggregates: statements, queries, local tables, window versions."""
