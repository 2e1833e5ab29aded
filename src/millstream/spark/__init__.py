"""The only package that knows Spark: sessions, types, sources, lowering of plans."""
