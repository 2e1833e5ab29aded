"""Names in scope: which relations a query reads, and which column a name means."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from sqlglot import exp

from millstream.analysis.error_collector import error_at
from millstream.analysis.queries.resolved_expression import ColumnRef, Expr
from millstream.catalog.functions import BARE_FUNCTIONS
from millstream.errors import AnalysisError, Span, did_you_mean
from millstream.syntax.spans import span_of
from millstream.types import UNKNOWN, Field, Kind

UNNAMED = "__query"
"""Prefix of the aliases of queries in FROM that have none."""


@dataclass(frozen=True)
class ScopeRelation:
    """A relation under the name by which the query calls it; ``fields`` is None where only Spark knows."""

    alias: str
    fields: tuple[Field, ...] | None
    implicit: tuple[Field, ...] = ()
    """Columns that may be named but are no part of ``*``: window_start, window_end, wid, complete."""
    is_stream: bool = False
    source: str = ""
    """Its name in the plan, if that is another."""

    @property
    def shown(self) -> str:
        """Name for messages; a query without a name has none."""
        return "(SELECT ...)" if self.alias.startswith(UNNAMED) else self.alias

    def find(self, name: str) -> ColumnRef | None:
        for candidate in (*(self.fields or ()), *self.implicit):
            if candidate.name.lower() == name.lower():
                return ColumnRef(self.source or self.alias, candidate.name, candidate.type)
        return ColumnRef(self.source or self.alias, name, UNKNOWN) if self.fields is None else None

    def bound(self, name: str) -> ColumnRef:
        """Return a bound of the window, which has no relation where a column has its name."""
        found = next(field for field in self.implicit if field.name == name.lower())
        return ColumnRef("" if self.hides_bound(name) else self.alias, found.name, found.type)

    def hides_bound(self, name: str) -> bool:
        """Tell whether a column has the name of a bound of the window."""
        bounds = {field.name for field in self.implicit}
        return name.lower() in bounds and any(f.name.lower() == name.lower() for f in self.fields or ())


@dataclass(frozen=True)
class NamedColumn:
    """Meaning of a name: a column, its text, and the struct fields taken from it."""

    column: ColumnRef
    span: Span | None
    fields: tuple[str, ...] = ()


@dataclass
class Scope:
    """The relations of a FROM clause; a column of a USING join is taken from its first relation."""

    relations: list[ScopeRelation] = field(default_factory=list)
    merged: dict[str, str] = field(default_factory=dict)
    outer: Scope | None = None
    hidden: list[ScopeRelation] = field(default_factory=list)
    """The right sides of SEMI and ANTI joins, of which only ON has seen the columns."""
    bound: Callable[[exp.Expr], ColumnRef | None] = lambda node: None
    """The bound of a window that a name means although a column has it, too."""
    advice: Callable[[exp.Column], str | None] = lambda node: None
    """A hint about a name that is no column, but something else in the query."""
    filled: dict[str, Expr] = field(default_factory=dict)
    """The values of columns of a RIGHT or FULL join with USING, whose left side may be NULL."""

    def add(self, relation: ScopeRelation, node: exp.Expr) -> None:
        if any(relation.alias.lower() == known.alias.lower() for known in (*self.relations, *self.hidden)):
            raise error_at(
                node,
                f"'{relation.alias}' is named twice in FROM",
                hint=f"give one of them another name: {relation.alias} AS other",
            )
        self.relations.append(relation)

    def hide(self, relation: ScopeRelation) -> None:
        self.relations.remove(relation)
        self.hidden.append(relation)

    def relation(self, alias: str) -> ScopeRelation | None:
        return next((r for r in self.relations if r.alias.lower() == alias.lower()), None)

    def resolve(self, node: exp.Column) -> NamedColumn | None:
        """Resolve a name, or return None for a function that is called without parentheses.

        ``a.b`` is column b of relation a, or else field b of column a.
        """
        parts = node.parts
        if len(parts) >= 2:
            relation = self.relation(parts[0].name)
            if relation is not None:
                return self._of_relation(relation, parts)
        found = self._unqualified(parts[0].name, parts[0])
        if found is not None:
            if len(parts) > 1 and found.type.is_known and found.type.kind is not Kind.STRUCT:
                raise error_at(
                    parts[0],
                    f"'{parts[0].name}' is neither a stream or table of this query nor a struct",
                    hint=did_you_mean(parts[0].name, [r.alias for r in self.relations]),
                )
            return _named(found, parts, 1)
        if len(parts) == 1 and parts[0].name.lower() in BARE_FUNCTIONS:
            return None
        if self.outer is not None:
            return self.outer.resolve(node)
        raise self._unknown(node)

    def _of_relation(self, relation: ScopeRelation, parts: list[exp.Expr]) -> NamedColumn:
        column = relation.find(parts[1].name)
        if column is None:
            raise error_at(
                parts[1],
                f"unknown column '{parts[1].name}' in '{relation.alias}'",
                hint=did_you_mean(parts[1].name, [f.name for f in relation.fields or ()])
                or _columns_hint(relation),
            )
        return _named(column, parts, 2)

    def _unqualified(self, name: str, node: exp.Expr) -> ColumnRef | None:
        home = self.merged.get(name.lower())
        if home is not None:
            relation = self.relation(home)
            return relation.find(name) if relation else None
        bound = self.bound(node)
        if bound is not None:
            return bound
        # A relation whose columns only Spark knows might have any; it is asked last.
        closed = [r for r in self.relations if r.fields is not None]
        found = [c for c in (r.find(name) for r in closed) if c is not None]
        candidates = found or [c for r in self.relations if r.fields is None and (c := r.find(name))]
        if len(candidates) > 1:
            owners = ", ".join(f"{c.relation}.{c.name}" for c in candidates)
            raise error_at(node, f"'{name}' is ambiguous", hint=f"it could be {owners}")
        return candidates[0] if candidates else None

    def _unknown(self, node: exp.Column) -> AnalysisError:
        parts = node.parts
        known = [f.name for r in self.relations for f in (*(r.fields or ()), *r.implicit)]
        if any(parts[0].name.lower() == relation.alias.lower() for relation in self.hidden):
            return error_at(
                parts[0],
                f"'{parts[0].name}' has no columns behind a SEMI or ANTI join",
                hint="only ON can ask for them; an inner join has the columns of both sides",
            )
        if len(parts) > 1:
            return error_at(
                parts[0],
                f"unknown stream or table '{parts[0].name}' in this query",
                hint=did_you_mean(parts[0].name, [r.alias for r in self.relations]),
            )
        hint = self.advice(node) or did_you_mean(parts[0].name, known)
        if hint is None and len(self.relations) == 1:
            hint = _columns_hint(self.relations[0])
        return error_at(node, f"unknown column '{parts[0].name}'", hint=hint)


def _named(column: ColumnRef, parts: list[exp.Expr], used: int) -> NamedColumn:
    first, last = span_of(parts[0]), span_of(parts[used - 1])
    span = (first[0], last[1]) if first and last else None
    return NamedColumn(column, span, tuple(part.name for part in parts[used:]))


def _columns_hint(relation: ScopeRelation) -> str | None:
    names = [f.name for f in relation.fields or ()]
    owner = f"'{relation.alias}' has" if relation.alias else "there is"
    return f"{owner} {', '.join(names)}" if names else None
