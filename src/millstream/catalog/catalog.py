"""The catalog: names to entries. Names are case-insensitive, as in Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from millstream.catalog.entries import (
    Aggregate,
    Entry,
    Reader,
    Relation,
    ScalarFunction,
    Sink,
    Stream,
    Table,
    View,
)
from millstream.types import Field

_KINDS: dict[type, str] = {
    Stream: "stream",
    Table: "table",
    View: "view",
    Sink: "sink",
    ScalarFunction: "function",
    Aggregate: "aggregate",
}


def kind_of(entry: Entry) -> str:
    return _KINDS[type(entry)]


class Catalog:
    """Streams, tables, views and sinks share one name space; functions and aggregates another.

    ``elsewhere`` looks up tables that the catalog does not have: those of the user's own Spark session.
    ``allow_python`` permits statements that run code with the rights of this process. If it is false,
    ``allow`` names formats, path schemes and databases that statements may use nevertheless. Aggregates of
    the library are looked up last.
    """

    def __init__(
        self,
        elsewhere: Callable[[str], Table | None] | None = None,
        *,
        allow_python: bool = True,
        allow: Iterable[str] = (),
    ) -> None:
        self._relations: dict[str, Relation | Sink] = {}
        self._functions: dict[str, ScalarFunction] = {}
        self._aggregates: dict[tuple[str, bool], Aggregate] = {}
        self._elsewhere = elsewhere
        self.allow_python = allow_python
        self.allow = frozenset(name.lower() for name in allow)
        self._shipped: Callable[[str], tuple[Aggregate, ...]] = lambda name: ()
        self._shipped_names: Callable[[], Iterable[str]] = tuple
        self.settings: dict[str, str] = {}
        self.infer: Callable[[Reader], tuple[Field, ...]] | None = None
        """Infers the columns that a definition leaves out from the files behind a reader."""
        self._unclear: set[tuple[str, bool]] = set()
        """Names whose definitions had errors, each with a flag for names of functions."""

    def copy(self) -> Catalog:
        """Return a copy that can be changed without changing this catalog."""
        twin = Catalog(self._elsewhere, allow_python=self.allow_python, allow=self.allow)
        twin._relations = dict(self._relations)
        twin._functions = dict(self._functions)
        twin._aggregates = dict(self._aggregates)
        twin._shipped, twin._shipped_names = self._shipped, self._shipped_names
        twin.settings = dict(self.settings)
        twin.infer = self.infer
        twin._unclear = set(self._unclear)
        return twin

    def ship(
        self, versions: Callable[[str], tuple[Aggregate, ...]], names: Callable[[], Iterable[str]]
    ) -> None:
        """Set the library: ``versions`` returns the versions of an aggregate by its name in lower case."""
        self._shipped, self._shipped_names = versions, names

    def add(self, entry: Entry) -> None:
        """Add an entry or replace the one of that name; the caller checks whether it may be replaced."""
        self._unclear.discard((entry.name.lower(), isinstance(entry, Aggregate | ScalarFunction)))
        match entry:
            case Aggregate():
                self._aggregates[entry.name.lower(), entry.window] = entry
            case ScalarFunction():
                self._functions[entry.name.lower()] = entry
            case _:
                self._relations[entry.name.lower()] = entry

    def remove(self, entry: Entry) -> None:
        match entry:
            case Aggregate():
                del self._aggregates[entry.name.lower(), entry.window]
            case ScalarFunction():
                del self._functions[entry.name.lower()]
            case _:
                del self._relations[entry.name.lower()]

    def obscure(self, name: str, *, is_function: bool) -> None:
        """Remove a name whose definition has an error, and mark it as unclear."""
        name = name.lower()
        self._unclear.add((name, is_function))
        if is_function:
            self._functions.pop(name, None)
            for window in (False, True):
                self._aggregates.pop((name, window), None)
        else:
            self._relations.pop(name, None)

    def is_unclear(self, name: str, *, is_function: bool) -> bool:
        """Return whether the definition of a name had an error."""
        return (name.lower(), is_function) in self._unclear

    def relation(self, name: str) -> Relation | None:
        entry = self._relations.get(name.lower())
        if isinstance(entry, Stream | Table | View):
            return entry
        if entry is not None or self._elsewhere is None or self.is_unclear(name, is_function=False):
            return None
        return self._elsewhere(name)

    def sink(self, name: str) -> Sink | None:
        entry = self._relations.get(name.lower())
        return entry if isinstance(entry, Sink) else None

    def named(self, name: str) -> Relation | Sink | None:
        """Return the stream, table, view or sink of this name."""
        return self._relations.get(name.lower())

    def function(self, name: str) -> ScalarFunction | None:
        return self._functions.get(name.lower())

    def own_aggregate(self, name: str, *, window: bool = False) -> Aggregate | None:
        """Return an aggregate defined by the user, never one of the library."""
        return self._aggregates.get((name.lower(), window))

    def aggregate(self, name: str, *, window: bool = False) -> Aggregate | None:
        """Return an aggregate defined by the user, or else one of the library: never one version of each."""
        name = name.lower()
        if name in self._functions or any((name, version) in self._aggregates for version in (False, True)):
            return self.own_aggregate(name, window=window)
        if self.is_unclear(name, is_function=True):
            return None
        return next((entry for entry in self._shipped(name) if entry.window == window), None)

    def has_aggregate(self, name: str) -> bool:
        return self.aggregate(name) is not None or self.aggregate(name, window=True) is not None

    def entries(self, *kinds: type) -> list[Entry]:
        """Return all entries of these kinds, in the order of their creation."""
        everything: Iterable[Entry] = (
            *self._relations.values(),
            *self._functions.values(),
            *self._aggregates.values(),
        )
        return [entry for entry in everything if isinstance(entry, kinds)]

    def relation_names(self) -> list[str]:
        return [e.name for e in self._relations.values() if not isinstance(e, Sink)]

    def function_names(self) -> list[str]:
        own = [e.name for e in self._functions.values()] + [e.name for e in self._aggregates.values()]
        return [*own, *self._shipped_names()]
