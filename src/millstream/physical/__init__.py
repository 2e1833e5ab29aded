"""Physical plans: stages, kernels, layouts, sharing and choices, without Spark."""
