"""Checkpoints: the manifest, result files, and Spark's part."""
