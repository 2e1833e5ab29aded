"""Interpreter: from a logical plan and the whole input to the whole answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from millstream.catalog import Catalog
from millstream.catalog.entries import Rejected, Stream, View, source_columns
from millstream.plan import nodes
from millstream.plan.pattern_parts import is_searched
from millstream.plan.relation_variance import maintained
from millstream.plan.time_attributes import timestamps
from millstream.types import bound_type
from oracle.errors import NotInterpreted
from oracle.grouping import maintained_groups, window_aggregate, window_rows
from oracle.inputs import Arrivals, Input, row_values
from oracle.instants import Rows, States, common_time, to_stream
from oracle.lifetimes import Varying, varying
from oracle.operators import (
    extend,
    filter_,
    generate,
    grouping_sets,
    project,
    rename,
    stream_union,
    table_join,
)
from oracle.patterns.pattern_search import matches, returned
from oracle.relations import Record, Relation, in_order, is_final
from oracle.scans import Scanned, computed_values, scan, stream_of_rows
from oracle.values.points import from_point, within
from oracle.values.values import Value
from oracle.windows.bracket_windows import windowed
from oracle.windows.over_windows import over_aggregate
from oracle.windows.ranking import window_rank
from oracle.windows.window_reports import Line


@dataclass(frozen=True)
class ResultRow:
    """A row of a result: its timestamp (None for latent tuples and tables), its columns, its place.

    ``order`` breaks ties of ``time``: (source, source partition, offset), where sources are numbered as they
    stand in the query from left to right; for the result of a bracket window (source, wid, whether complete,
    tuples so far, group key). A join with a table adds the number of the table's row.
    """

    time: Value
    values: tuple[Value, ...]
    order: tuple[Any, ...]


@dataclass(frozen=True)
class Answer:
    """The result of a query, in order, and the rejected tuples of its streams, in order of arrival."""

    columns: tuple[str, ...]
    rows: list[ResultRow]
    late: dict[str, list[tuple[Value, ...]]]
    bad: dict[str, list[tuple[Value, ...]]]

    @property
    def values(self) -> list[tuple[Value, ...]]:
        """The rows without hidden columns."""
        return [row.values for row in self.rows]


def run(
    plan: nodes.Node, inputs: Mapping[str, Input], *, ended: bool = True, catalog: Catalog | None = None
) -> Answer:
    """Interpret a plan on the whole input.

    Args:
        plan: A logical plan, optimized or not.
        inputs: The arrivals of each stream, and the rows of each table, by name.
        ended: Whether the input ends with the lists, which promises everything; otherwise the answer has
            results of windows only if the promises have made them final.
        catalog: Definitions of the streams whose late tuples or bad records the plan reads, and of the
            user-defined aggregates that patterns call.
    """
    interpreter = _Interpreter(inputs, ended, catalog)
    relation = interpreter.interpret(plan)
    records = [record for record in in_order(relation) if not record.is_late]
    return Answer(
        columns=tuple(column.name for column in relation.schema),
        rows=[_row(record, relation) for record in records],
        late={s.stream.name: [r.values for r in s.late] for s in interpreter.scanned},
        bad={s.stream.name: [r.values for r, _ in s.bad] for s in interpreter.scanned},
    )


def _row(record: Record, relation: Relation) -> ResultRow:
    if record.time is None or relation.time_type is None:
        return ResultRow(None, record.values, record.order)
    time = from_point(within(record.time, relation.time_type), bound_type(relation.time_type))
    return ResultRow(time, record.values, record.order)


class _Interpreter:
    """Evaluates a plan from its leaves, left before right."""

    def __init__(self, inputs: Mapping[str, Input], ended: bool, catalog: Catalog | None) -> None:
        self._inputs = {name.lower(): given for name, given in inputs.items()}
        self._ended = ended
        self._catalog = catalog
        self._sources = 0
        self.scanned: list[Scanned] = []

    def interpret(self, node: nodes.Node) -> Relation:
        """Return the output of a node that is not a window."""
        return self._interpret(node, _NODES)

    def content(self, node: nodes.Node) -> Relation:
        """Return the input of an aggregate: a window, perhaps behind a filter and joins with tables."""
        return self._interpret(node, _CONTENTS if _has_window(node) else _NODES)

    def _interpret(
        self, node: nodes.Node, rules: Mapping[type, Callable[[_Interpreter, Any], Relation]]
    ) -> Relation:
        rule = rules.get(type(node))
        if rule is None:
            raise NotInterpreted(_NOT_INTERPRETED.get(type(node), f"the operator {type(node).__name__}"))
        return rule(self, node)

    # ------------------------------------------------------------ leaves

    def stream_scan(self, node: nodes.StreamScan) -> Relation:
        origin = node.stream.origin
        if not isinstance(origin, Rejected):
            return self._scan(node.stream, node.alias).tuples(self._ended)
        entry = self._catalog.relation(origin.stream) if self._catalog else None
        if not isinstance(entry, Stream):
            raise NotInterpreted(f"{origin} without a catalog that describes '{origin.stream}'")
        return self._scan(entry, node.alias).rejected(node.stream, origin.reason, self._ended)

    def _scan(self, stream: Stream, alias: str) -> Scanned:
        given = self._inputs.get(stream.read.name.lower())
        if not isinstance(given, Arrivals):
            raise ValueError(f"there is no input for the stream '{stream.name}': give it Arrivals")
        scanned = scan(stream, given, self._sources, alias)
        self._sources += 1
        self.scanned.append(scanned)
        return scanned

    def table_scan(self, node: nodes.TableScan) -> Relation:
        if isinstance(node.table, View):
            raise NotInterpreted("reading a view")
        name, schema = node.table.name, node.table.schema
        given = self._inputs.get(name.lower())
        if given is None or isinstance(given, Arrivals):
            raise ValueError(f"there is no input for the table '{name}': give it a list of rows")
        if schema is None:
            raise NotInterpreted(f"the table '{name}', whose columns only Spark knows")
        fields = source_columns(schema, node.table.computed)
        rows = enumerate(computed_values(row_values(row, fields, name), node.table)[0] for row in given)
        return Relation(node.schema, [Record(values, None, (number,)) for number, values in rows])

    def table_stream(self, node: nodes.TableStream) -> Relation:
        """Return rows in the order of a column, as a stream that has ended."""
        self._sources += 1
        return stream_of_rows(node, self.interpret(node.input), self._sources - 1)

    # ------------------------------------------------------------ operators

    def rename(self, node: nodes.Rename) -> Relation:
        return rename(node, self.interpret(node.input))

    def project(self, node: nodes.Project) -> Relation:
        return project(node, self.interpret(node.input))

    def filter(self, node: nodes.Filter) -> Relation:
        return filter_(node, self.interpret(node.input))

    def generate(self, node: nodes.Generate) -> Relation:
        return generate(node, self.interpret(node.input)).promising(timestamps(node))

    def extend(self, node: nodes.Extend) -> Relation:
        return extend(node, self.interpret(node.input))

    def table_join(self, node: nodes.TableJoin) -> Relation:
        joined = table_join(node, self.interpret(node.left), self.interpret(node.right))
        return joined.promising(timestamps(node))

    def grouping_sets(self, node: nodes.GroupingSets) -> Relation:
        return grouping_sets(node, self.interpret(node.input))

    def stream_union(self, node: nodes.StreamUnion) -> Relation:
        union = stream_union(node, self.interpret(node.left), self.interpret(node.right))
        return union if node.all else union.promising(timestamps(node))

    def over_aggregate(self, node: nodes.OverAggregate) -> Relation:
        below = self.interpret(node.input)
        self._sources += 1
        return over_aggregate(node, below, self._sources - 1).promising(timestamps(node))

    def stream_limit(self, node: nodes.StreamLimit) -> Relation:
        below = self.interpret(node.input)
        rows = [record for record in in_order(below) if not record.is_late]
        final = [record for record in rows if is_final(record, below)]
        end = None if node.limit is None else node.offset + node.limit
        waiting = [record for record in rows if not is_final(record, below)]
        return below.held_back(waiting).changed(final[node.offset : end]).promising(timestamps(node))

    def window_rank(self, node: nodes.WindowRank) -> Relation:
        below = self.interpret(node.input)
        self._sources += 1
        return window_rank(node, below, self._sources - 1).promising(timestamps(node))

    def window_aggregate(self, node: nodes.WindowAggregate) -> Relation:
        source = self._sources
        return window_aggregate(node, self.content(node.input), source)

    def window_rows(self, node: nodes.WindowRows) -> Relation:
        source = self._sources
        return window_rows(node, self.content(node.input), source)

    def pattern_match(self, node: nodes.PatternMatch) -> Relation:
        return returned(node, self._beside_matches(node.input, node), self._catalog or Catalog())

    def _beside_matches(self, below: nodes.Node, node: nodes.PatternMatch) -> Relation:
        """Return the matches of a pattern, joined with the tables of FROM: they meet matches, not tuples."""
        if is_searched(below, node):
            return matches(node, self.interpret(below), self._catalog or Catalog())
        if not isinstance(below, nodes.TableJoin):
            return self.interpret(below)
        left, right = (self._beside_matches(side, node) for side in (below.left, below.right))
        return table_join(below, left, right)

    def relation_to_stream(self, node: nodes.RelationToStream) -> Relation:
        source, lines = self._sources, []
        windows: dict[int, Varying] = {}
        tables: dict[int, Rows] = {}
        for below in maintained(node.input):
            if isinstance(below, nodes.Windowed) and below.streaming:
                lines.append(Line(below.window, self.interpret(below.input)))
                windows[id(below)] = varying(below.window, lines[-1])
            elif not below.inputs:
                tables[id(below)] = [
                    (record.order, record.values) for record in self.interpret(below).records
                ]
        states = States(windows, tables, maintained_groups)
        time_type = common_time(line.type for line in lines)
        rows = to_stream(node.input, node.kind, states, time_type, source, ended=self._ended)
        if node.instant is None:
            return rows
        records = []
        for one in rows.records:
            assert one.time is not None
            records.append(replace(one, values=(*one.values, from_point(one.time, node.instant))))
        return replace(rows, schema=node.schema, records=records)

    # ------------------------------------------------------------ contents of windows

    def windowed(self, node: nodes.Windowed) -> Relation:
        return windowed(node, self.interpret(node.input))

    def filtered_window(self, node: nodes.Filter) -> Relation:
        return filter_(node, self.content(node.input))

    def joined_window(self, node: nodes.TableJoin) -> Relation:
        return table_join(node, self.content(node.left), self.content(node.right))


def _has_window(node: nodes.Node) -> bool:
    """Return whether a window is visible here, outside derived streams."""
    if isinstance(node, nodes.Filter | nodes.TableJoin | nodes.WindowJoin):
        return any(_has_window(below) for below in node.inputs)
    return isinstance(node, nodes.Windowed)


_NODES: dict[type, Callable[[_Interpreter, Any], Relation]] = {
    nodes.StreamScan: _Interpreter.stream_scan,
    nodes.TableScan: _Interpreter.table_scan,
    nodes.TableStream: _Interpreter.table_stream,
    nodes.Rename: _Interpreter.rename,
    nodes.Project: _Interpreter.project,
    nodes.Filter: _Interpreter.filter,
    nodes.Generate: _Interpreter.generate,
    nodes.Extend: _Interpreter.extend,
    nodes.TableJoin: _Interpreter.table_join,
    nodes.StreamUnion: _Interpreter.stream_union,
    nodes.OverAggregate: _Interpreter.over_aggregate,
    nodes.StreamLimit: _Interpreter.stream_limit,
    nodes.WindowRank: _Interpreter.window_rank,
    nodes.WindowAggregate: _Interpreter.window_aggregate,
    nodes.WindowRows: _Interpreter.window_rows,
    nodes.GroupingSets: _Interpreter.grouping_sets,
    nodes.PatternMatch: _Interpreter.pattern_match,
    nodes.RelationToStream: _Interpreter.relation_to_stream,
}
_CONTENTS: dict[type, Callable[[_Interpreter, Any], Relation]] = {
    nodes.Windowed: _Interpreter.windowed,
    nodes.Filter: _Interpreter.filtered_window,
    nodes.TableJoin: _Interpreter.joined_window,
}
_NOT_INTERPRETED: dict[type, str] = {
    nodes.Windowed: "a window that is not aggregated",
    nodes.SparkQuery: "a query over tables only, which is Spark's",
    nodes.BaseAggregate: "a user-defined aggregate on a bare stream",
}
