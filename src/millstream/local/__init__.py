"""Physical plans without Spark: one process, bounded input, no checkpoints."""
