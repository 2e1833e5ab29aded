"""Aggregates of the library as entries of the catalog, made when they are first used."""

from __future__ import annotations

from functools import cache

from millstream.analysis.definitions.create_aggregate import analyse_aggregate
from millstream.catalog import Catalog
from millstream.catalog.entries import Aggregate
from millstream.library import bundled_aggregates
from millstream.syntax import nodes, parse_script


def stock(catalog: Catalog) -> None:
    """Make the library known in a catalog."""
    catalog.ship(library_aggregate, bundled_aggregates.names)


def library_aggregate(name: str) -> tuple[Aggregate, ...]:
    """Return the versions of an aggregate of the library; none if there is no such aggregate."""
    return _made(name) if name in bundled_aggregates.names() else ()


@cache
def _made(name: str) -> tuple[Aggregate, ...]:
    # What is in the library may use the library, but nothing of the user's.
    catalog = Catalog()
    stock(catalog)
    for statement in parse_script(bundled_aggregates.text(name), f"library/{name}.esl"):
        assert isinstance(statement.tree, nodes.CreateAggregate), f"{name}.esl has nothing but aggregates"
        catalog.add(analyse_aggregate(statement.tree, catalog, statement.source))
    return tuple(entry for entry in catalog.entries(Aggregate) if isinstance(entry, Aggregate))
