"""Sequence patterns: ``FROM s PARTITION BY k AS (X, *Y, Z)``, whose conditions belong to its variables."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from millstream.analysis.error_collector import error_at
from millstream.analysis.patterns.pattern_elaborator import PatternElaborator, build_pattern
from millstream.analysis.patterns.pattern_expressions import PatternExpressions
from millstream.analysis.patterns.pattern_names import ENDS, PatternNames, Variable, tuple_argument
from millstream.analysis.patterns.variable_references import ReferenceFinder, ReferenceKind, VariableReference
from millstream.analysis.queries.from_clause import searched, tables_of
from millstream.analysis.queries.resolved_expression import Expr
from millstream.analysis.queries.resolved_query import (
    Output,
    PatternClause,
    PatternElement,
    ReadLateral,
    Select,
)
from millstream.analysis.queries.scope import Scope
from millstream.analysis.queries.window_clause import StreamFacts
from millstream.analysis.types.coercion import can_sort
from millstream.catalog.entries import Timestamp
from millstream.errors import AnalysisError, did_you_mean
from millstream.syntax import nodes, to_sql
from millstream.syntax.spans import span_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.queries.name_resolver import Resolver
    from millstream.analysis.queries.resolved_query import FromItem, JoinClause

EACH = "EACH"
_CLAUSES = frozenset({"expressions", "from_", "joins", "where", "order", "with_"})


def analyse_pattern_query(
    node: exp.Select,
    table: nodes.StreamTable | nodes.StreamSubquery,
    source: FromItem,
    joins: list[JoinClause],
    resolver: Resolver,
    facts: StreamFacts | None,
) -> Select:
    """Return a SELECT whose FROM has one pattern, on ``table``; what stands beside it are tables."""
    _check_from(node, table, joins)
    _check_clauses(node)
    analyser = _PatternAnalyser(node, table, resolver, facts)
    outputs = analyser.outputs()
    return Select(
        source=source,
        joins=tuple(joins),
        outputs=outputs,
        pattern=build_pattern(analyser.clause(), outputs, analyser.expressions.spoken, analyser.elaborator),
        facts=analyser.result_facts(outputs),
        span=span_of(node),
    )


def _check_from(
    node: exp.Select, table: nodes.StreamTable | nodes.StreamSubquery, joins: list[JoinClause]
) -> None:
    if table.args.get("window") is not None:
        raise error_at(
            table.args["window"],
            "a pattern is searched in a bare stream",
            hint="leave the window out, or make a stream of the windowed query first",
        )
    clause = node.args["from_"].this
    beside = [*(clause.args.get("joins") or ()), *(node.args.get("joins") or ())]
    for other in (clause, *(join.this for join in beside)):
        if other is not table and other.args.get("pattern") is not None:
            raise error_at(
                other,
                "one pattern is enough for a FROM",
                hint="make a stream of the matches of one: CREATE STREAM m AS SELECT ...",
            )
    for join in joins:
        if isinstance(join.item, ReadLateral):
            raise AnalysisError(
                f"'{join.item.alias}' is computed for each row, and a pattern gives matches",
                span=join.item.span,
                hint="make a stream of the matches, CREATE STREAM m AS SELECT ..., and write it behind m",
            )
        names = () if join.condition is None else join.condition.relations()
        if join.condition is not None and table.name and table.name.lower() in map(str.lower, names):
            raise AnalysisError(
                "a pattern is joined with tables in WHERE",
                span=join.condition.span or span_of(table),
                hint=f"FROM {searched(table)} ... AS (X, *Y), t WHERE X.k = t.k",
            )


def _check_clauses(node: exp.Select) -> None:
    for name, value in node.args.items():
        if value and name not in _CLAUSES and not (name == "operation_modifiers" and _each(node)):
            part = value[0] if isinstance(value, list) else value
            clause = {"group": "GROUP BY", "operation_modifiers": to_sql(part)}.get(name, name.upper())
            raise AnalysisError(
                f"{clause} cannot be used with a pattern",
                span=span_of(part) or span_of(node),
                hint="make a stream of the matches, CREATE STREAM m AS SELECT ..., and query that",
            )


def _each(node: exp.Select) -> bool:
    """Tell whether a query is SELECT EACH: a row for each tuple that the last star takes."""
    return any(modifier.name == EACH for modifier in node.args.get("operation_modifiers") or ())


class _PatternAnalyser:
    """Analyser of the clauses of one pattern query."""

    def __init__(
        self,
        node: exp.Select,
        table: nodes.StreamTable | nodes.StreamSubquery,
        resolver: Resolver,
        facts: StreamFacts | None,
    ) -> None:
        self.node = node
        self.pattern: nodes.Pattern = table.args["pattern"]
        self.resolver = resolver
        self.each = _each(node)
        relation = resolver.scope.relations[[one is table for one in tables_of(node)].index(True)]
        self.relation = relation
        self.facts = facts if relation.is_stream else None
        self._check_beside(table, facts)
        self.partition_by = tuple(self._column(c, "partitioning") for c in self._listed("partition_by"))
        self.sequence_by = self._sequence()
        tables = [other for other in resolver.scope.relations if other is not relation]
        self.names = PatternNames(
            self._variables(),
            relation,
            self.partition_by,
            Scope(tables, dict(resolver.scope.merged), resolver.scope.outer),
        )
        self.mentions = ReferenceFinder(self.names, resolver.catalog)
        self.elaborator = PatternElaborator(self.names, resolver)
        self.expressions = PatternExpressions(self.elaborator, resolver)

    # ------------------------------------------------------------ the pattern itself

    def _check_beside(
        self, table: nodes.StreamTable | nodes.StreamSubquery, facts: StreamFacts | None
    ) -> None:
        if facts is not None and not self.relation.is_stream:
            raise error_at(
                table, f"'{searched(table)}' is a table, and a pattern in it cannot be joined with a stream"
            )

    def _listed(self, argument: str) -> list[exp.Column]:
        return self.pattern.args.get(argument) or []

    def _column(self, node: exp.Column, what: str) -> str:
        other = node.table and node.table.lower() != self.relation.alias.lower()
        column = None if other else self.relation.find(node.name)
        if column is None:
            raise error_at(
                node,
                f"unknown {what} column '{node.name}' in '{self.relation.shown}'",
                hint=did_you_mean(node.name, [f.name for f in self.relation.fields or ()]),
            )
        return column.name

    def _sequence(self) -> tuple[str, ...]:
        """Return the columns that order a table; a stream has its own order, and () stands for it."""
        listed = self._listed("sequence_by")
        names = tuple(self._column(c, "sequencing") for c in listed)
        if self.facts is not None:
            timestamp = self.facts.timestamp.column
            for name, column in zip(names, listed, strict=True):
                if timestamp is None or name.lower() != timestamp.lower() or len(names) > 1:
                    raise error_at(
                        column,
                        "a stream is searched in the order of its timestamp",
                        hint=f"write SEQUENCE BY {timestamp}, or leave it out"
                        if timestamp
                        else "leave it out",
                    )
            return ()
        if not listed:
            raise error_at(
                self.pattern,
                f"'{self.relation.shown}' is a table and has no order: SEQUENCE BY is missing",
                hint="PARTITION BY k SEQUENCE BY t AS (X, *Y)",
            )
        for column in listed:
            found = self.relation.find(column.name)
            if found is not None and not can_sort(found.type):
                raise error_at(column, f"{found.type} has no order for SEQUENCE BY")
        return names

    def _variables(self) -> tuple[Variable, ...]:
        variables: list[Variable] = []
        for element in self.pattern.args["elements"]:
            name = element.name
            if any(name.lower() == known.name.lower() for known in variables):
                raise error_at(element, f"pattern variable '{name}' is named twice")
            if self.resolver.scope.relation(name) is not None:
                raise error_at(
                    element,
                    f"'{name}' is the name of a table or stream of this query",
                    hint="give the pattern variable another name",
                )
            variables.append(Variable(name, bool(element.args.get("star")), len(variables)))
        return tuple(variables)

    # ------------------------------------------------------------ WHERE

    def clause(self) -> PatternClause:
        per_tuple: list[list[Expr]] = [[] for _ in self.names.variables]
        final: list[list[Expr]] = [[] for _ in self.names.variables]
        after_match: list[Expr] = []
        where = self.node.args.get("where")
        for conjunct in _conjuncts(where.this) if where is not None else ():
            with self.resolver.collected():
                mentions = list(self.mentions.of(conjunct))
                condition = self.expressions.condition(conjunct, "WHERE")
                owner = max((m.variable.position for m in mentions if m.variable), default=None)
                if owner is None or any(m.variable is None for m in mentions):
                    self._check_after_match(mentions)
                    after_match.append(condition)
                elif all(
                    m.how is ReferenceKind.FINAL
                    for m in mentions
                    if m.variable and m.variable.position == owner
                ):
                    final[owner].append(condition)
                else:
                    per_tuple[owner].append(condition)
        if self.resolver.mistakes is not None:
            self.resolver.mistakes.check()
        if self.each:
            self._check_each(final)
        elements = tuple(
            PatternElement(v.name, v.star, tuple(per_tuple[v.position]), tuple(final[v.position]))
            for v in self.names.variables
        )
        return PatternClause(
            self.relation.alias,
            self.partition_by,
            self.sequence_by,
            elements,
            tuple(after_match),
            each=self.each,
        )

    def _check_each(self, final: list[list[Expr]]) -> None:
        """Check that the rows of the last star are certain as soon as it has taken a tuple."""
        last = self.names.variables[-1]
        other = next((v for v in self.names.variables[:-1] if v.star), None)
        if not last.star:
            raise error_at(
                self.pattern,
                f"EACH needs a star at the end, and '{last.name}' is one tuple",
                hint=f"*{last.name}",
            )
        if other is not None:
            raise error_at(
                self.pattern,
                f"EACH with the star '{other.name}' before '{last.name}'",
                hint="its end may show that an earlier match has taken these tuples: make a stream of the"
                " matches up to there, and search in that",
            )
        for condition in final[-1]:
            raise AnalysisError(
                f"a condition on all of '{last.name}', of which EACH has given out rows before",
                span=condition.span,
                hint=f"test each tuple: ccount({last.name}.x) counts so far",
            )

    def _check_after_match(self, mentions: list[VariableReference]) -> None:
        for mention in mentions:
            if mention.how is ReferenceKind.RUNNING:
                raise error_at(
                    mention.node,
                    "a condition with a table is tested on matches, where a star is complete",
                    hint="put the star into the aggregate: count(*Y)",
                )

    # ------------------------------------------------------------ SELECT

    def outputs(self) -> tuple[Output, ...]:
        outputs: list[Output] = []
        for item in self.node.expressions:
            with self.resolver.collected():
                outputs += self._output(item)
        return tuple(outputs)

    def _output(self, item: exp.Expr) -> Iterator[Output]:
        if item.is_star:
            yield from self._expanded(item)
            return
        value = item.unalias()
        last = self.names.variables[-1]
        for mention in self.mentions.of(value):
            if self.each and mention.variable == last and mention.how is ReferenceKind.FINAL:
                raise error_at(
                    mention.node,
                    f"with EACH the star '{last.name}' is not complete",
                    hint=f"take the tuple itself, {last.name}.x, or a running aggregate: csum({last.name}.x)",
                )
            if mention.how is ReferenceKind.RUNNING and not (self.each and mention.variable == last):
                raise error_at(
                    mention.node,
                    "in SELECT a star is complete, and its aggregates are final",
                    hint="put the star into the aggregate: count(*Y)",
                )
        named = isinstance(item, exp.Alias) or isinstance(value, exp.Column | exp.Dot)
        name = item.alias_or_name if named else self._written(value)
        yield Output(name, self.expressions.resolve(value))

    def _expanded(self, item: exp.Expr) -> Iterator[Output]:
        """Expand ``X.*`` and ``A.*``; a plain ``*`` does not say of which tuple."""
        table = item.table if isinstance(item, exp.Column) else ""
        variable = self.names.variable(table)
        relation = self.relation if variable is not None else self.names.tables.relation(table)
        if relation is None or relation.fields is None:
            raise error_at(
                item,
                "name the columns of a match",
                hint=f"write {self.names.variables[0].name}.*, or the columns one by one",
            )
        owner = variable.name if variable is not None else relation.alias
        for column in relation.fields:
            yield Output(column.name, self.expressions.resolve(exp.column(column.name, table=owner)))

    def _written(self, node: exp.Expr) -> str:
        span = span_of(node)
        text = self.resolver.source.text[span[0] : span[1] + 1] if span else to_sql(node)
        return " ".join(text.split())

    # ------------------------------------------------------------ order

    def result_facts(self, outputs: tuple[Output, ...]) -> StreamFacts | None:
        """Return the facts about matches, which have the timestamp of their last tuple."""
        order = self.node.args.get("order")
        stamped = next((o.name for o in outputs if self._is_timestamp(o.expr.tree)), None)
        if [output.name for output in outputs].count(stamped or "") > 1:
            stamped = None
        for ordered in order.expressions if order is not None else ():
            by_name = isinstance(ordered.this, exp.Column) and stamped == ordered.this.name
            if ordered.args.get("desc") or not (by_name or self._is_timestamp(ordered.this)):
                raise error_at(
                    ordered,
                    "matches can only be ordered by their timestamp",
                    hint="leave ORDER BY out: matches come in this order",
                )
        if self.facts is None:
            return None
        timestamp = Timestamp(self.facts.timestamp.kind, stamped, self.facts.timestamp.type)
        promised = frozenset({stamped.lower()} if stamped else ())
        return replace(self.facts, timestamp=timestamp, promised=promised)

    def _is_timestamp(self, node: exp.Expr | None) -> bool:
        """Tell whether an expression is the timestamp of the last tuple of a match."""
        timestamp = self.facts.timestamp.column if self.facts is not None else None
        if timestamp is None or node is None or node.name.lower() != timestamp.lower():
            return False
        last = self.names.variables[-1]
        if isinstance(node, exp.Column):
            return len(node.parts) == 2 and self.names.variable_of(node) == last
        if not isinstance(node, exp.Dot) or not isinstance(node.this, exp.Anonymous):
            return False
        return node.this.name.lower() == ENDS[1] and tuple_argument(node.this, self.names) == last


def _conjuncts(node: exp.Expr) -> Iterator[exp.Expr]:
    inside = node.unnest()
    if isinstance(inside, exp.And):
        yield from _conjuncts(inside.this)
        yield from _conjuncts(inside.expression)
    else:
        yield node
