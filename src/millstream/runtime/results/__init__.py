"""Results of queries: the log, materialized results, sorting, output formats, sinks."""
