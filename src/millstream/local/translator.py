"""From a physical plan to rows in memory: each node as one process runs it, and nothing is decided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import singledispatch

import pyarrow as pa
import pyarrow.compute as pc

from millstream.analysis.queries.resolved_expression import ColumnRef, Expr
from millstream.errors import NotExecutableError
from millstream.kernels.core.arrow_types import arrow_type
from millstream.local.frame import BATCH, Frame, concatenated
from millstream.local.lookup import looked_up
from millstream.local.row_order import in_order, places
from millstream.local.sources import Sources, stored
from millstream.local.stage_runner import StageRunner
from millstream.physical import nodes
from millstream.physical.node import Column, Guard, PhysicalNode
from millstream.stage.hidden_columns import is_hidden
from millstream.stage.pipeline import KEEP, MARK, TIME, tagged_name
from millstream.types import BIGINT, BOOLEAN, INT, Type


@dataclass
class Translation:
    """The surroundings of a run: sources, the runner of stages, and rows of nodes that have been run.

    Branches of several queries take their rows from those of the stages that they share.
    """

    sources: Sources
    stages: StageRunner
    shared: tuple[Frame, ...] = ()
    _rows: dict[int, tuple[PhysicalNode, Frame]] = field(default_factory=dict)

    def frame(self, node: PhysicalNode) -> Frame:
        """Return the rows of a node, with their hidden columns; a node is run once."""
        if id(node) not in self._rows:
            # The node is kept, too: while it is there no other one has its identity.
            self._rows[id(node)] = node, to_rows(node, self)
        return self._rows[id(node)][1]


@singledispatch
def to_rows(node: PhysicalNode, to: Translation) -> Frame:
    """Return the rows of a node, with their hidden columns."""
    raise AssertionError(f"{type(node).__name__} is no node of a plan that is run alone")


# ------------------------------------------------------------ leaves


@to_rows.register
def _scan(node: nodes.Scan, to: Translation) -> Frame:
    frames = to.sources.stream(node.stream)
    frame = frames.good if node.bad is None else frames.bad
    return frame.alias(node.alias) if node.alias else frame


@to_rows.register
def _table_scan(node: nodes.TableScan, to: Translation) -> Frame:
    if node.definition is None:
        return to.sources.table(node.table).alias(node.alias)
    rows = to.frame(node.definition)
    return stored(Frame.of(rows.shown, rows.count)).alias(node.alias)


@to_rows.register
def _spark_query(node: nodes.SparkQuery, to: Translation) -> Frame:
    if node.rows is not None:
        one = Frame((), (), 1)
        types = [field.type for field in node.fields_ or ()]
        rows = [[one.evaluate(v, type_=t)[0] for v, t in zip(row, types, strict=True)] for row in node.rows]
        pairs = [
            (column.ref, pa.array([row[i].as_py() for row in rows], arrow_type(column.type)))
            for i, column in enumerate(node.layout)
        ]
        return stored(Frame.of(pairs, len(rows)))
    raise NotExecutableError(
        "a query over tables only is run by Spark as it is written", hint="run it without --engine local"
    )


# ------------------------------------------------------------ without a state


@to_rows.register
def _rename(node: nodes.Rename, to: Translation) -> Frame:
    return to.frame(node.input).alias(node.alias)


@to_rows.register
def _compute(node: nodes.Compute, to: Translation) -> Frame:
    frame, guard = to.frame(node.input), node.guard
    for condition in node.conditions:
        if node.late_pending:
            kept = pc.fill_null(frame.evaluate(condition, guard, BOOLEAN), False)
            frame, guard = frame.with_hidden(KEEP, BOOLEAN, kept), Guard.KEPT
        elif guard is Guard.NONE:
            frame = frame.where(frame.holds(condition))
        else:
            outcome = pc.fill_null(frame.evaluate(condition, guard, BOOLEAN), False)
            frame = frame.where(pc.or_(pc.invert(frame.holds(Expr((guard.value,), BOOLEAN))), outcome))
    before = set(frame.hidden)

    def is_dropped(name: str) -> bool:
        return name in before and name != BATCH and node.is_dropped(name)

    if node.columns is not None:
        made = [(c.ref, frame.evaluate(_expr(c), guard, c.type)) for c in node.columns]
        kept_pairs = [p for p in frame.pairs if is_hidden(p[0].name) and not is_dropped(p[0].name)]
        return _with_hidden(Frame.of([*made, *kept_pairs], frame.count), node.hidden)
    if nodes.ALL in node.drops:
        return _with_hidden(frame.without_hidden(is_dropped), node.hidden)
    return _with_hidden(frame, node.hidden).without_hidden(is_dropped)


def _with_hidden(frame: Frame, columns: Sequence[Column]) -> Frame:
    for column in columns:
        frame = frame.with_hidden(column.name, column.type, frame.evaluate(_expr(column), type_=column.type))
    return frame


def _expr(column: Column) -> Expr:
    assert column.expr is not None, "the column is computed"
    return column.expr


@to_rows.register
def _align(node: nodes.Align, to: Translation) -> Frame:
    frame = to.frame(node.input)
    pairs = [
        (ColumnRef("", f.name, f.type if f.type.is_known else ref.type), converted(column, ref.type, f.type))
        for f, (ref, column) in zip(node.fields_, frame.shown, strict=True)
    ]
    made = {
        c.name: (ColumnRef("", c.name, c.type), frame.evaluate(_expr(c), type_=c.type)) for c in node.hidden
    }
    drops = node.drops or ("\0",)
    for ref, column in frame.pairs:
        if is_hidden(ref.name) and ref.name not in made and not ref.name.startswith(drops):
            pairs.append((ref, column))
    return Frame.of([*pairs, *made.values()], frame.count)


def converted(column: pa.Array, given: Type, wanted: Type) -> pa.Array:
    """Return a column as another type."""
    if not wanted.is_known or given == wanted:
        return column
    alone = Frame((ColumnRef("", "c", given),), (column,), len(column))
    return alone.evaluate(Expr((f"CAST(`c` AS {wanted})",), wanted), type_=wanted)


@to_rows.register
def _merge(node: nodes.Merge, to: Translation) -> Frame:
    return concatenated([to.frame(branch) for branch in node.branches])


@to_rows.register
def _lookup(node: nodes.Lookup, to: Translation) -> Frame:
    return looked_up(node, to.frame(node.left), to.frame(node.right))


@to_rows.register
def _explode(node: nodes.Explode, to: Translation) -> Frame:
    frame = to.frame(node.input)
    place = next(i for i, ref in enumerate(frame.refs) if ref.name == node.column)
    lists = frame.columns[place].to_pylist()
    marks = frame.hidden[MARK].is_valid().to_pylist() if node.marked else [False] * frame.count
    numbers: list[int | None] = []
    places: list[int | None] = []
    values: list[object] = []
    for number, (several, is_mark) in enumerate(zip(lists, marks, strict=True)):
        own = several or ([None] if is_mark or node.outer else [])
        numbers += [number] * len(own)
        places += range(len(own)) if several else [None] * len(own)
        values += own
    taken = frame.take(numbers)
    columns = list(taken.columns)
    columns[place] = pa.array(values, arrow_type(node.type))
    refs = list(taken.refs)
    refs[place] = ColumnRef(refs[place].relation, node.column, node.type)
    if node.position is not None:
        columns.append(pa.array(places, pa.int32()))
        refs.append(ColumnRef("", node.position, INT))
    return Frame(tuple(refs), tuple(columns), taken.count)


@to_rows.register
def _stage(node: nodes.Stage, to: Translation) -> Frame:
    return to.stages.run(node, [to.frame(one.node) for one in node.sources])


@to_rows.register
def _branch(node: nodes.Branch, to: Translation) -> Frame:
    tag = None if node.tag is None else node.tag[1]
    rows = to.shared[tag or 0]
    names = [ref.name if tag is None else tagged_name(tag, ref.name) for ref in rows.refs]
    if node.branch is not None:
        name, number = node.branch
        mask = pc.equal(rows.columns[names.index(name)], number)
        rows = rows.where(pc.fill_null(mask, False))
    given = dict(zip(names, rows.pairs, strict=True))
    types = {column.name: column.type for column in node.layout}
    pairs = [(ColumnRef("", name, types[name]), given[inner][1]) for inner, name in node.columns]
    return Frame.of([*pairs, (ColumnRef("", BATCH, BIGINT), rows.hidden[BATCH])], rows.count)


@to_rows.register
def _output(node: nodes.Output, to: Translation) -> Frame:
    return to.frame(node.input)


# ------------------------------------------------------------ tables only


@to_rows.register
def _sequence(node: nodes.Sequence, to: Translation) -> Frame:
    frame = to.frame(node.input)
    keys = [frame.evaluate(key) for key in node.keys]
    ordered = frame.take(in_order(frame.count, keys, [(False, True)] * len(keys)))
    shown = Frame.of(ordered.shown, ordered.count)
    return stored(shown).with_hidden(TIME, BIGINT, pa.array(range(shown.count), pa.int64()))


@to_rows.register
def _arrange(node: nodes.Arrange, to: Translation) -> Frame:
    frame, wanted = to.frame(node.input), node.arrangement
    keys = [frame.shown[key.column][1] for key in wanted.keys]
    taken = frame.take(places(frame.count, keys, wanted))
    return stored(Frame.of(taken.shown, taken.count))


@to_rows.register
def _distinct(node: nodes.Distinct, to: Translation) -> Frame:
    frame = to.frame(node.input)
    first = {row: number for number, row in reversed(list(enumerate(_tuples(frame))))}
    taken = frame.take(sorted(first.values()))
    return stored(Frame.of(taken.shown, taken.count))


@to_rows.register
def _set_operation(node: nodes.TableSetOperation, to: Translation) -> Frame:
    raise _only_spark(f"{node.kind} of tables")


@to_rows.register
def _groups(node: nodes.TableGroups, to: Translation) -> Frame:
    raise _only_spark("built-in aggregates over a table")


def _only_spark(what: str) -> NotExecutableError:
    return NotExecutableError(
        f"{what} cannot be computed by the local engine", hint="run without --engine local"
    )


def _tuples(frame: Frame) -> list[tuple[object, ...]]:
    columns = [column.to_pylist() for _, column in frame.shown]
    return [tuple(map(repr, row)) for row in zip(*columns, strict=True)] if columns else [()] * frame.count
