"""Progress of streams: disorder clauses, watermarks and late tuples."""
