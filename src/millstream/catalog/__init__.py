"""The catalog: streams, tables, sinks, functions and aggregates as frozen entries."""

from millstream.catalog.catalog import Catalog, kind_of

__all__ = ["Catalog", "kind_of"]
