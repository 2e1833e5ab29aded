"""User-defined aggregates over windows: the choice of version (semantics, section 7), and its results.

Everything follows the definition: an instance for each partition, with a list of the tuples in its window;
panes are lists of tuples.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from millstream.analysis.queries.call_nodes import AggregateCall, OverCall
from millstream.analysis.queries.resolved_expression import ColumnRef
from millstream.ir import typed_nodes
from millstream.ir.python_aggregate import PythonBody
from millstream.quantity import Duration, Rows
from oracle.bodies import Instance, Row, converted, of_content
from oracle.errors import NotInterpreted
from oracle.relations import Record
from oracle.values.casts import cast
from oracle.values.expressions import compiled
from oracle.values.points import Point
from oracle.values.values import Value

Returned = list[tuple[Value, ...]]
"""The rows returned for a tuple."""
Arguments = Callable[[Record], list[Value]]
Left = Callable[[int, int], bool]
"""Returns whether a tuple of a partition has left the window of another; both by their positions."""


def arguments_of(call: AggregateCall, body: typed_nodes.Body, schema: Sequence[ColumnRef]) -> Arguments:
    """Return the arguments of a call as a body takes them."""
    if call.filter is not None or call.distinct:
        raise NotInterpreted(f"FILTER or DISTINCT with '{call.name}'")
    functions = [compiled(argument, schema) for argument in call.arguments]
    types = [argument.type for argument in call.arguments]
    return lambda record: converted([f(record.values) for f in functions], types, body)


def base_of(call: AggregateCall) -> typed_nodes.Body:
    """Return the base version, or a window version that sees the content of windows instead."""
    body = None
    if call.bodies is not None and call.bodies.unfit is None:
        body = _in_esl(call.bodies.base) or _in_esl(call.bodies.window)
    if body is None:
        raise NotInterpreted(f"the aggregate '{call.name}'")
    return body


def _in_esl(body: typed_nodes.Body | PythonBody | None) -> typed_nodes.Body | None:
    """Return a body in ESL; aggregates in Python have a definition of their own."""
    return body if isinstance(body, typed_nodes.Body) else None


def results(call: AggregateCall, returned: Returned) -> list[Value]:
    """Convert rows to values of the call: a row is a tuple, unless it has a single column."""
    if call.user is not None and call.user.returns_row:
        return list(returned)
    return [row[0] for row in returned]


# ---------------------------------------------------------------- a window that follows its tuples


@dataclass
class Following:
    """A window version with the tuples of its window, including those that the body has deleted."""

    body: typed_nodes.Body
    instance: Instance | None = None
    window: list[tuple[int, Row]] = field(default_factory=list)
    """Positions of tuples, and their rows in inwindow."""

    def leave(self, has_left: Callable[[int], bool]) -> list[tuple[int, Returned]]:
        """Run EXPIRE for each tuple that has left, unless the body has deleted it; return its rows."""
        returned = []
        for position, row in [one for one in self.window if has_left(one[0])]:
            assert self.instance is not None
            inwindow = self.instance.tables[typed_nodes.INWINDOW]
            if any(one is row for one in inwindow):
                # While EXPIRE runs, the leaving tuple is still in the window.
                returned.append((position, self.instance.run("EXPIRE")))
                inwindow[:] = [one for one in inwindow if one is not row]
            self.window = [one for one in self.window if one[1] is not row]
            if not self.window:
                self.instance = None
        return returned

    def come(self, position: int, arguments: Sequence[Value]) -> Returned:
        block = "ITERATE"
        if self.instance is None:
            self.instance, block = Instance(_with_inwindow(self.body)), "INITIALIZE"
        row = list(arguments)
        self.instance.tables[typed_nodes.INWINDOW].append(row)
        self.window.append((position, row))
        return self.instance.run(block, arguments)

    @property
    def content(self) -> list[Row]:
        return [] if self.instance is None else self.instance.tables[typed_nodes.INWINDOW]


def _with_inwindow(body: typed_nodes.Body) -> typed_nodes.Body:
    if any(table.name == typed_nodes.INWINDOW for table in body.tables):
        return body
    return replace(body, tables=(*body.tables, typed_nodes.Table(typed_nodes.INWINDOW, body.parameters)))


# ---------------------------------------------------------------- the table "which version runs"


def over_results(
    over: OverCall, history: Sequence[Record], schema: Sequence[ColumnRef], left: Left
) -> list[Returned]:
    """Return the rows for each tuple of a partition's history."""
    call, base = over.call, base_of(over.call)
    bodies = call.bodies
    assert bodies is not None
    if over.frame.preceding is None and bodies.base is not None:
        return _running(base, [arguments_of(call, base, schema)(record) for record in history])
    if not _is_tumble(over):
        pane = _pane(over)
        if bodies.panes is not None and pane > 1:
            given = [arguments_of(call, bodies.panes.pane, schema)(record) for record in history]
            return _paned(over, pane, given)
        if (window := _in_esl(bodies.window)) is not None:
            given = [arguments_of(call, window, schema)(record) for record in history]
            return _followed(window, given, left)
    given = [arguments_of(call, base, schema)(record) for record in history]
    return [of_content(base, [given[j] for j in range(i + 1) if not left(j, i)]) for i in range(len(history))]


def _is_tumble(over: OverCall) -> bool:
    match over.slide, over.frame.preceding:
        case Rows(slide), Rows(reach):
            return slide >= reach + 1
        case Duration() as slide, Duration() as reach:
            return slide.microseconds >= reach.microseconds
    return False


def _pane(over: OverCall) -> int:
    """Return the number of tuples in a pane, if windows begin and end after so many tuples only."""
    match over.slide, over.frame.preceding:
        case Rows(slide), Rows(reach):
            return math.gcd(
                slide, reach + 1, over.emit_every.count if isinstance(over.emit_every, Rows) else 0
            )
    return 0


def _running(base: typed_nodes.Body, given: Sequence[Sequence[Value]]) -> list[Returned]:
    instance = Instance(base)
    return [
        [*instance.run("INITIALIZE" if i == 0 else "ITERATE", arguments), *instance.run("TERMINATE")]
        for i, arguments in enumerate(given)
    ]


def _followed(body: typed_nodes.Body, given: Sequence[Sequence[Value]], left: Left) -> list[Returned]:
    window = Following(body)
    returned = []
    for i, arguments in enumerate(given):
        window.leave(lambda j, i=i: left(j, i))  # type: ignore[misc]
        returned.append(window.come(i, arguments))
    return returned


def _paned(over: OverCall, pane: int, given: Sequence[Sequence[Value]]) -> list[Returned]:
    """Run the base version on each pane, and pass its rows to the version that combines panes."""
    bodies, reach = over.call.bodies, over.frame.preceding
    assert bodies is not None
    assert bodies.panes is not None
    assert isinstance(reach, Rows)
    combined = bodies.panes.combined
    body = _in_esl(combined.window) or _in_esl(combined.base)
    assert body is not None
    count = (reach.count + 1) // pane
    window = Following(body)
    panes: list[list[list[Value]]] = []
    returned: list[Returned] = [[] for _ in given]
    for number in range(len(given) // pane):
        rows = of_content(bodies.panes.pane, given[number * pane : (number + 1) * pane])
        types = [f.type for f in bodies.panes.pane.returns]
        panes.append([converted(row, types, body) for row in rows])
        out: Returned = []
        if combined.window is not None:
            for row in panes[-1]:
                window.leave(lambda j, number=number: j <= number - count)  # type: ignore[misc]
                out = window.come(number, row)
        else:
            content = [row for pane_ in panes[-count:] for row in pane_]
            out = of_content(body, content) if panes[-1] else []
        wanted = [f.type for f in base_of(over.call).returns]
        own = [f.type for f in body.returns]
        returned[(number + 1) * pane - 1] = [tuple(map(cast, row, own, wanted)) for row in out]
    return returned


# ---------------------------------------------------------------- ACTIVE EXPIRATION


def active_results(
    over: OverCall,
    history: Sequence[Record],
    schema: Sequence[ColumnRef],
    times: Sequence[Point],
    reach: Point,
) -> tuple[list[Returned], list[Returned]]:
    """Return the rows for each tuple of a partition on its arrival, and on its expiry."""
    call, base = over.call, base_of(over.call)
    assert call.bodies is not None
    body = _in_esl(call.bodies.window)
    given = [arguments_of(call, body or base, schema)(record) for record in history]
    window = Following(body or replace(base, tables=(), initialize=(), iterate=(), terminate=(), expire=()))
    speaks = any(isinstance(s, typed_nodes.Insert) and s.table is None for s in window.body.expire)
    came: list[Returned] = []
    gone: list[Returned] = [[] for _ in history]

    def leave(instant: Point | None) -> None:
        for position in range(len(came)):
            if instant is None or times[position] + reach < instant:
                for which, returned in window.leave(lambda j, position=position: j == position):  # type: ignore[misc]
                    left = [list(row) for row in window.content]
                    gone[which] = returned if speaks else of_content(base, left)

    for i, arguments in enumerate(given):
        leave(times[i])
        returned = window.come(i, arguments)
        came.append(returned if body is not None else of_content(base, window.content))
    leave(None)
    return came, gone
