"""Stateful operators on Arrow batches, a file each; no Spark, no SQL, no plan and no clock."""
