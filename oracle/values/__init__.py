"""Values and functions by definition: arithmetic, casts, text, aggregates."""
