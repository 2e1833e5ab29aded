"""Relations that vary with time: joins, set operations, groups, RSTREAM, maintained incrementally."""
