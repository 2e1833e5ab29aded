"""The engine beside its peers, over the same rows: ``python -m benchmarks engine``."""
