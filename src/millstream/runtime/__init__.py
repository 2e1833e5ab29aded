"""Scripts to running queries: connections, results, progress, sinks."""
