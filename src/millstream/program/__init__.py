"""A generated program, its loader and cache, and the run-time library that generated source calls."""
