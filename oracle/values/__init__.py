"""Values and functions by their definitions: arithmetic, casts, text, aggregates."""
