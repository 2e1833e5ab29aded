"""Benchmarks, side by side with what people would use otherwise: ``make bench``."""
