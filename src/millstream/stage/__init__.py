"""Layer between Spark and kernels: packing, lateness, pipelines and their state, without Spark."""
