"""Names that a body may use, the rows that its queries scan, and statements that cannot be compiled."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Generic, TypeVar

from sqlglot import exp

from millstream.errors import AnalysisError
from millstream.ir import typed_nodes
from millstream.types import Field, Type

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from millstream.analysis.queries.scope import Scope
    from millstream.analysis.types.type_inference import OpenTypes
    from millstream.catalog import Catalog
    from millstream.catalog.entries import Aggregate

RETURN = "return"

NO_RECURSION = (
    "a call is compiled into the code of its caller, which would have no end; write each level as an"
    " aggregate of its own"
)


class MistakenCallError(AnalysisError):
    """A call in a body that no version could run: of several rows as one value, or of itself."""


Fields = tuple[Field, ...]
T = TypeVar("T")


@dataclass(frozen=True)
class LocalTable:
    """A local table of an aggregate."""

    name: str
    fields: Fields


@dataclass(frozen=True)
class BodyNames:
    """Names that the statements of one block may use, and what is known about the body around it."""

    aggregate: str
    window: bool
    parameters: Fields
    tables: tuple[LocalTable, ...]
    catalog: Catalog
    open_types: OpenTypes = field(repr=False)
    body_of: Callable[[Aggregate, Sequence[Type]], typed_nodes.Body] = field(repr=False)
    """Specialises an aggregate that the body calls."""
    is_typed: bool = False
    """True once all types are settled, so that typed forms can be made."""
    scans: Iterator[int] = field(default_factory=itertools.count, repr=False)
    """Numbers for scans."""
    block: str = ""

    def for_pass(self) -> BodyNames:
        """Return the names for another pass over all statements."""
        return replace(self, is_typed=self.open_types.all_settled, scans=itertools.count())

    def in_block(self, block: str) -> BodyNames:
        return replace(self, block=block)

    def table(self, name: str) -> LocalTable | None:
        return next((t for t in self.tables if t.name.lower() == name.lower()), None)

    def parameter(self, name: str) -> Field | None:
        return next((p for p in self.parameters if p.name.lower() == name.lower()), None)

    def settled(self, fields: Fields) -> Fields:
        """Return columns with what is known by now of their types."""
        return tuple(Field(f.name, self.open_types.settled(f.type)) for f in fields)

    def attempt(self, make: Callable[[], T]) -> Attempt[T]:
        """Make a typed form once all types are settled; a refusal is kept until the form is needed."""
        if not self.is_typed:
            return Attempt()
        try:
            return Attempt(make())
        except AnalysisError as refusal:
            # Its frames would be kept with the catalog.
            return Attempt(refusal=refusal.with_traceback(None))


@dataclass(frozen=True)
class Attempt(Generic[T]):
    """A typed form, or the refusal of what is right but cannot be compiled."""

    value: T | None = None
    refusal: AnalysisError | None = None

    def get(self) -> T:
        if self.refusal is not None:
            raise self.refusal
        assert self.value is not None, "types are settled"
        return self.value


@dataclass
class Scans:
    """Scans of a SELECT under the names by which it knows them, and those of the queries around it."""

    scope: Scope
    numbers: dict[str, typed_nodes.Scan] = field(default_factory=dict)
    outer: Scans | None = None

    def column(self, relation: str, name: str) -> typed_nodes.Column | None:
        scan = self.numbers.get(relation.lower())
        if scan is None:
            return None if self.outer is None else self.outer.column(relation, name)
        for index, column in enumerate(scan.fields):
            if column.name.lower() == name.lower():
                return typed_nodes.Column(scan.number, index, column.type)
        return None


def walk(node: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the parts of an expression, except those of its subqueries."""
    return node.walk(prune=lambda part: isinstance(part, exp.Query))


def is_literal(node: exp.Expr) -> bool:
    """Tell whether a value is a number or a text as it is written."""
    return isinstance(node.unnest(), exp.Literal) or (isinstance(node, exp.Neg) and is_literal(node.this))
