"""What lies between Spark and the kernels: packing, lateness, pipelines and their state. No Spark here."""
