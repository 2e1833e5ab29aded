"""Entries of the catalog: frozen descriptions of streams, tables, sinks, functions and aggregates."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from millstream.errors import Place
from millstream.masking import masked
from millstream.quantity import Duration, Quantity
from millstream.types import Field, Type

Options = tuple[tuple[str, str], ...]

FILE_FORMATS = frozenset({"csv", "json", "parquet", "orc", "text", "avro", "xml", "binaryfile"})
"""Formats whose input is bounded: the files that exist when the query starts."""


# ---------------------------------------------------------------- origins of tuples


@dataclass(frozen=True)
class Reader:
    """A data source of Spark: ``USING format OPTIONS (...)``."""

    format: str
    options: Options = ()

    @property
    def is_bounded(self) -> bool:
        """Return whether the input has an end; with ``follow 'true'`` new files are awaited."""
        follows = (self.option("follow") or "").lower() == "true"
        return self.format.lower() in FILE_FORMATS and not follows

    def option(self, name: str) -> str | None:
        return next((value for key, value in self.options if key.lower() == name.lower()), None)

    def __str__(self) -> str:
        path = self.option("path")
        return f"{self.format} '{masked(path)}'" if path else self.format


@dataclass(frozen=True)
class Port:
    """``SOURCE 'port4445'``: lines of JSON or CSV that arrive at a TCP port of the loopback interface."""

    number: int
    is_bounded = False

    def __str__(self) -> str:
        return f"port {self.number}"


@dataclass(frozen=True)
class Registered:
    """A DataFrame passed by the caller; the runtime stores it under the entry's name."""

    is_bounded: bool = False

    def __str__(self) -> str:
        return "a DataFrame"


@dataclass(frozen=True)
class Stored:
    """Rows of the session's own, changed by INSERT, UPDATE and DELETE."""

    is_bounded = True

    def __str__(self) -> str:
        return "the session"


@dataclass(frozen=True)
class Derived:
    """A query (``AS query``); its definition is an analysed query, opaque to this layer."""

    definition: object = field(repr=False)
    is_bounded: bool = False

    def __str__(self) -> str:
        return "a query"


@dataclass(frozen=True)
class Rejected:
    """Late tuples or bad records of another stream."""

    stream: str
    reason: str
    is_bounded: bool = False

    def __str__(self) -> str:
        return f"the {self.reason} records of {self.stream}"


Origin = Reader | Port | Registered | Stored | Derived | Rejected

NOT_IN_SCHEMA = "it cannot be read in the stream's schema"
NO_TIMESTAMP = "the timestamp is NULL"
NOT_FINITE = "the timestamp is not a finite number"
OUTERMOST = "the timestamp is the smallest or the largest BIGINT"
"""Reasons for which a record is bad."""


NOT_TESTED = "the condition of the stream's query cannot be computed"


def not_computed(name: str) -> str:
    """Return the reason for which a record is bad when the expression of a column fails."""
    return f"column '{name}' cannot be computed"


# ---------------------------------------------------------------- time


class TimestampKind(Enum):
    """Origin of a tuple's timestamp: the data, the clock on arrival, or none (ESL paper, section 2)."""

    EXTERNAL = "external"
    INTERNAL = "internal"
    LATENT = "latent"


@dataclass(frozen=True)
class Timestamp:
    """Order of a stream: its column unless latent. The type is needed even when the column is gone."""

    kind: TimestampKind
    column: str | None = None
    type: Type | None = None


LATENT = Timestamp(TimestampKind.LATENT)


@dataclass(frozen=True)
class SlackPromise:
    amount: Quantity
    generous: bool = False
    on: str | None = None


@dataclass(frozen=True)
class OrderedPerPromise:
    columns: tuple[str, ...]
    idle_after: Duration | None = None
    on: str | None = None


@dataclass(frozen=True)
class PunctuationPromise:
    predicate: object = field(repr=False)
    per: tuple[str, ...] = ()
    on: str | None = None


@dataclass(frozen=True)
class HeartbeatPromise:
    every: Duration
    on: str | None = None
    implied: bool = field(default=False, compare=False)
    """Whether no clause says it: tuples that are stamped on arrival cannot be older than the clock."""


Promise = SlackPromise | OrderedPerPromise | PunctuationPromise | HeartbeatPromise


# ---------------------------------------------------------------- entries


@dataclass(frozen=True)
class ComputedColumn:
    """A column that is computed from those before it; its analysed expression is opaque to this layer."""

    name: str
    expr: object = field(repr=False)


def source_columns(schema: tuple[Field, ...], computed: tuple[ComputedColumn, ...]) -> tuple[Field, ...]:
    """Return the columns that a source has: those that are not computed."""
    names = {column.name for column in computed}
    return tuple(field for field in schema if field.name not in names)


@dataclass(frozen=True)
class SelectStep:
    """One stateless SELECT: its input under a name, analysed conditions, and columns with their types."""

    alias: str
    conditions: tuple[object, ...] = field(repr=False)
    columns: tuple[ComputedColumn, ...]
    schema: tuple[Field, ...]


@dataclass(frozen=True)
class Selection:
    """A stateless query over another stream, behind which timestamps and promises are judged."""

    stream: Stream
    steps: tuple[SelectStep, ...]


@dataclass(frozen=True)
class Stream:
    """An append-only, ordered sequence of tuples."""

    name: str
    schema: tuple[Field, ...]
    origin: Origin
    timestamp: Timestamp = LATENT
    promises: tuple[Promise, ...] = ()
    late_into: str | None = None
    late_drop: bool = False
    bad_into: str | None = None
    computed: tuple[ComputedColumn, ...] = ()
    selection: Selection | None = None
    """The query behind which the order applies; the origin is then that of the query's stream."""
    place: Place | None = field(default=None, compare=False, repr=False)

    @property
    def read(self) -> Stream:
        """Return the stream whose source is read: this one, unless it selects from another."""
        return self.selection.stream if self.selection is not None else self

    @property
    def source_fields(self) -> tuple[Field, ...]:
        """Return the columns that come from the source: neither computed nor stamped on arrival."""
        if self.selection is not None:
            return self.selection.stream.source_fields
        internal = self.timestamp.column if self.timestamp.kind is TimestampKind.INTERNAL else None
        return tuple(f for f in source_columns(self.schema, self.computed) if f.name != internal)

    @property
    def is_bounded(self) -> bool:
        return self.origin.is_bounded

    @property
    def can_be_late(self) -> bool:
        """Return whether tuples can break a promise; timestamps given on arrival are always in order."""
        return self.timestamp.kind is TimestampKind.EXTERNAL or any(self.promises_on_others)

    @property
    def own_promises(self) -> tuple[Promise, ...]:
        """Return the promises about the timestamp."""
        return tuple(p for p in self.promises if self._attribute(p) is None)

    @property
    def promises_on_others(self) -> dict[str, tuple[Promise, ...]]:
        """Return the promises about other attributes than the timestamp, by name in lower case."""
        names = [name for name in map(self._attribute, self.promises) if name is not None]
        return {
            name: tuple(p for p in self.promises if self._attribute(p) == name)
            for name in dict.fromkeys(names)
        }

    def promised(self) -> frozenset[str]:
        """Return the attributes (in lower case) on which progress is promised."""
        named = set(self.promises_on_others)
        if self.timestamp.column:
            named.add(self.timestamp.column.lower())
        return frozenset(named)

    def _attribute(self, promise: Promise) -> str | None:
        """Return the attribute of a clause in lower case; None is the timestamp, which ON may name too."""
        timestamp = (self.timestamp.column or "").lower()
        on = (promise.on or timestamp).lower()
        return None if on == timestamp else on


@dataclass(frozen=True)
class Table:
    """A stored relation; ``schema`` is None where only Spark knows the columns."""

    name: str
    schema: tuple[Field, ...] | None
    origin: Origin
    refresh: Duration | None = None
    """Interval at which the table is read again while streams are joined with it."""
    computed: tuple[ComputedColumn, ...] = ()
    order: str | None = None
    """The column that windows are measured by and patterns follow."""
    place: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class View:
    """The papers' concrete view: the current result of a query.

    The result of a query over streams is ``maintained``; a query over views and tables is evaluated when the
    view is read. ``arrangement`` is the order and the LIMIT of a maintained result.
    """

    name: str
    schema: tuple[Field, ...] | None
    definition: object = field(repr=False)
    arrangement: object = field(default=None, repr=False)
    maintained: bool = True


@dataclass(frozen=True)
class Sink:
    name: str
    format: str
    options: Options = ()
    place: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class ScalarFunction:
    """A function of the user's: an SQL expression, or ``module:name`` in Python.

    A table function stands in FROM, and has ``columns``: in Python it returns a list of rows, and in SQL it
    is the query of its ``definition``.
    """

    name: str
    parameters: tuple[Field, ...]
    returns: Type
    body: str | None = None
    python: str | None = None
    columns: tuple[Field, ...] = ()
    definition: object = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Aggregate:
    """A user-defined aggregate, in its base or its window version."""

    name: str
    parameters: tuple[Field, ...]
    returns: tuple[Field, ...]
    window: bool
    blocking: bool
    returns_row: bool = False
    algebraic: bool = False
    partial: str | None = None
    final: str | None = None
    python: str | None = None
    definition: object = field(default=None, repr=False)

    @property
    def label(self) -> str:
        return "window aggregate" if self.window else "aggregate"


Relation = Stream | Table | View
Entry = Stream | Table | View | Sink | ScalarFunction | Aggregate
