"""Translation of Spark's errors."""
