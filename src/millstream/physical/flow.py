"""Flows: inputs on their way from sources to a stage, and what must be known of them.

Whether a tuple is late depends on all tuples before it, those included that a query does not want. So nothing
may drop rows of a source before they have been judged: conditions are noted in a column, and expressions are
evaluated only where they hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from millstream.analysis.queries.resolved_expression import ColumnRef, Expr, of_column
from millstream.analysis.queries.resolved_query import Output
from millstream.analysis.types.coercion import common_type_of
from millstream.catalog.entries import Stream, TimestampKind
from millstream.physical import expressions as ex
from millstream.physical.node import Column, Guard, PhysicalNode, Role
from millstream.physical.nodes import Align, Compute, Explode, Merge, Rename
from millstream.plan import nodes
from millstream.stage.hidden_columns import PREFIX, SORT
from millstream.stage.pipeline import COUNTED, KEEP, MARK, ORIGINS_PER_INPUT, TIME
from millstream.types import BOOLEAN, INT, TIMESTAMP, UNKNOWN, Field, Type, array


@dataclass(frozen=True)
class WindowAttribute:
    """An attribute other than the timestamp along which a window is measured.

    ``attribute`` is its name in the stream that is read, if that promises anything about it. In a union it
    may be the timestamp of one stream (``is_time``) and not of another.
    """

    column: ColumnRef
    attribute: str | None
    is_time: bool = False


@dataclass(frozen=True)
class FlowInput:
    """One of the inputs of a flow.

    With ``stream`` it has all tuples of that source, late ones included; otherwise it comes from a stage,
    with reports among its rows if ``marked``, or is as good as that: a table, a stream that is never late.
    """

    node: PhysicalNode
    stream: Stream | None = None
    marked: bool = False
    staged: bool = False
    untimed: bool = False
    """Rows without a time are among the others, and are no tuples."""
    changes: bool = False
    """Whether rows are changes of a relation, and not tuples of a stream."""
    axis: WindowAttribute | None = None
    """The attribute that is the time of its tuples, if not their timestamp; a stage has made it so."""
    origins: int = ORIGINS_PER_INPUT
    """The number of origins of its tuples, which are in their order."""

    @property
    def late_pending(self) -> bool:
        """Whether late tuples are still among the rows."""
        return self.stream is not None

    @property
    def guard(self) -> Guard:
        """The rows on which expressions are evaluated."""
        if self.late_pending and self.node.has(KEEP):
            return Guard.KEPT
        if self.untimed:
            return Guard.TIMED
        return Guard.UNMARKED if self.marked else Guard.NONE

    @property
    def is_latent(self) -> bool:
        return is_latent(self.stream)

    @property
    def time_type(self) -> Type:
        """The type of what counts as the time of tuples."""
        if self.stream is not None and self.axis is not None:
            return self.type_of(self.axis.column)
        return TIMESTAMP if self.is_latent else self.node.time_type

    def type_of(self, ref: ColumnRef) -> Type:
        """Return the type of a column."""
        known = next((c.type for c in self.node.shown if _key(c.ref) == _key(ref)), UNKNOWN)
        return known if known.is_known else ref.type

    def where(self, conditions: Iterable[Expr]) -> FlowInput:
        """Ask conditions of rows, or note their outcome while late tuples are among them."""
        asked = tuple(conditions)
        if not asked:
            return self
        return replace(
            self,
            node=Compute(self.node, conditions=asked, guard=self.guard, late_pending=self.late_pending),
        )

    def project(self, outputs: Iterable[Output]) -> FlowInput:
        """Compute columns."""
        columns = tuple(Column(o.name, o.expr.type, o.expr) for o in outputs)
        return self.compute(columns)

    def compute(self, columns: tuple[Column, ...]) -> FlowInput:
        """Compute columns; conditions that stand directly below are asked by the same node."""
        below = self.node
        if isinstance(below, Compute) and below.columns is None and not below.hidden and not below.drops:
            return replace(self, node=_collapsed(replace(below, columns=columns)))
        made = Compute(below, columns, guard=self.guard, late_pending=self.late_pending)
        return replace(self, node=_collapsed(made))

    def set_hidden(self, *hidden: Column, drops: tuple[str, ...] = ()) -> FlowInput:
        """Set hidden columns, and drop others."""
        return replace(self, node=Compute(self.node, hidden=hidden, drops=drops))

    def copied(self, column: ColumnRef, count: int) -> FlowInput:
        """Copy each row, with the numbers from 0 in a column."""
        numbers = ", ".join(map(str, range(count)))
        listed = Column(column.name, array(column.type), ex.constant(f"array({numbers})", array(column.type)))
        shown = (Column(c.name, c.type, of_column(c.ref), Role.DATA, c.relation) for c in self.node.shown)
        below = self.compute((*shown, listed)).node
        return replace(self, node=Explode(below, column.name, column.type, below.has(MARK)))

    def counted(self) -> FlowInput:
        """Tell the tuples that there are by now from those that were read, before more are left out."""
        if not self.late_pending or not self.node.has(KEEP):
            return self
        kept = ex.holds(ex.column(KEEP, BOOLEAN))
        return self.set_hidden(Column(COUNTED, BOOLEAN, kept, Role.MARK))


@dataclass(frozen=True)
class Flow:
    """A relation or stream: one input, or several that are united, all with the same columns."""

    inputs: tuple[FlowInput, ...]
    window: nodes.Windowed | None = None
    inside: tuple[Expr, ...] = ()
    """Conditions on what is in the window, where all tuples count for the window itself."""

    @property
    def late_pending(self) -> bool:
        """Whether late tuples are still among those of any input."""
        return any(one.late_pending for one in self.inputs)

    @property
    def origins(self) -> int:
        """The number of origins of the tuples of all inputs."""
        return sum(one.origins for one in self.inputs)

    @property
    def first(self) -> FlowInput:
        return self.inputs[0]

    @property
    def streaming(self) -> bool:
        return self.first.node.streaming

    def map(self, change: Callable[[FlowInput], FlowInput]) -> Flow:
        return replace(self, inputs=tuple(map(change, self.inputs)))

    def alias(self, name: str) -> Flow:
        return self.map(lambda one: replace(one, node=Rename(one.node, name)))


def passed(flow: Flow, node: PhysicalNode, *, marked: bool) -> FlowInput:
    """Return the results of a stage that passes tuples of a flow, with their origins."""
    return FlowInput(node, marked=marked, staged=True, origins=flow.origins)


def of_node(node: PhysicalNode) -> Flow:
    """Return a flow of rows that need not be judged."""
    return Flow((FlowInput(node),))


def is_latent(stream: Stream | None) -> bool:
    """Tell whether tuples of a stream get a timestamp only when an operator needs one."""
    return stream is not None and stream.timestamp.kind is TimestampKind.LATENT


def merged(flow: Flow) -> PhysicalNode:
    """Return the inputs of a flow one after the other, with all the hidden columns that any of them has."""
    if len(flow.inputs) == 1:
        return flow.first.node
    return Merge(tuple(one.node for one in flow.inputs))


def united(
    left: Flow, right: Flow, fields: tuple[Field, ...], *, latent: bool = False, ties: bool = False
) -> Flow:
    """Return both flows with the columns of their union; with ``ties`` each side sorts its ties."""
    inputs = (*left.inputs, *right.inputs)
    if latent:
        return Flow(tuple(_aligned(one, fields, TIMESTAMP, latent=True) for one in inputs))
    time = common_type_of(one.node.time_type for one in inputs)
    assert time is not None, "the analysis has compared the timestamps of a union"
    sorting = _sorting(left, right) if ties else ((), ())
    return Flow(
        tuple(
            _aligned(one, fields, time, own)
            for flow, own in zip((left, right), sorting, strict=True)
            for one in flow.inputs
        )
    )


def _sorting(left: Flow, right: Flow) -> tuple[tuple[Column, ...], tuple[Column, ...]]:
    """Columns that sort the tuples of a union with the same time: by side, then as each side sorts its own.

    Each side has the columns of both, because a stage takes inputs with the same columns. Numbers in front of
    their names keep the columns of the sides apart, and in this order.
    """
    found = [flow.first.node.sorting for flow in (left, right)]
    if not any(found):
        return (), ()
    sides: list[tuple[Column, ...]] = []
    for mine in (0, 1):
        columns = [Column(f"{SORT}0", INT, ex.constant(str(mine), INT), Role.SORT)]
        for side, own in enumerate(found):
            for one in own:
                value = ex.column(one.name, one.type) if side == mine else ex.nothing(one.type)
                name = f"{SORT}{side + 1}{one.name.removeprefix(SORT)}"
                columns.append(Column(name, one.type, value, Role.SORT))
        sides.append(tuple(columns))
    return sides[0], sides[1]


def _aligned(
    one: FlowInput,
    fields: tuple[Field, ...],
    time: Type,
    sorting: tuple[Column, ...] = (),
    *,
    latent: bool = False,
) -> FlowInput:
    """The columns of an input under the names and types of the union."""
    own = ex.cast(ex.column(TIME, one.node.time_type), time)
    stamp = Column(TIME, time, ex.nothing(time) if latent and not one.late_pending else own, Role.TIME)
    return replace(one, node=Align(one.node, fields, (stamp, *sorting), (SORT,)))


def named(node: PhysicalNode, columns: Iterable[tuple[ColumnRef, str]]) -> PhysicalNode:
    """Return columns of a stage under the names that expressions use."""
    types = {c.name: c.type for c in node.layout}
    return Compute(
        node,
        tuple(
            Column(ref.name, types[name], ex.column(name, types[name]), _role(ref), ref.relation)
            for ref, name in columns
        ),
    )


def _collapsed(node: Compute) -> Compute:
    """Compute with the columns of a stage themselves, where the node below only names them."""
    below = node.input
    if not isinstance(below, Compute) or not below.only_names or node.columns is None:
        return node
    names = {_key(c.ref): c.expr.column for c in below.columns or () if c.expr is not None}
    exprs = [*node.conditions, *(c.expr for c in node.columns if c.expr is not None)]
    if not all(expr.movable and all(names.get(_key(c)) for c in expr.columns()) for expr in exprs):
        return node

    def named_below(expr: Expr) -> Expr:
        return expr.substitute(lambda ref: names[_key(ref)] or ref)

    columns = tuple(c if c.expr is None else replace(c, expr=named_below(c.expr)) for c in node.columns)
    conditions = tuple(map(named_below, node.conditions))
    return _collapsed(replace(node, input=below.input, columns=columns, conditions=conditions))


def _role(ref: ColumnRef) -> Role:
    return Role.MARK if not ref.relation and ref.name.startswith(PREFIX) else Role.DATA


def _key(ref: ColumnRef) -> tuple[str, str]:
    return ref.relation.lower(), ref.name.lower()
