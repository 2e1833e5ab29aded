"""Checkpoints: the manifest, result files, and Spark's part of it."""
