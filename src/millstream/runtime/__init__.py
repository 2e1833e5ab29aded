"""The runtime: connections, scripts, running queries, results, checkpoints and sinks."""
