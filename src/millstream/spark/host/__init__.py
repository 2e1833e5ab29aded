"""Stages inside Spark: the stateful processor, control stream, reports, clean-up of workers and the JVM."""
