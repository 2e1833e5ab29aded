"""CREATE and the other statements: streams, tables, sinks, aggregates, the library."""
