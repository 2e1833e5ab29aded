"""Generated programs of a plan: the body that each aggregate of the user's runs, in which mode, and patterns.

Lowering asks for modes and shared bodies here, so EXPLAIN CODE shows without Spark what is run with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from millstream.analysis.queries.call_nodes import AggregateCall, OverCall
from millstream.codegen.patterns.measure_programs import with_programs
from millstream.codegen.patterns.pattern_compiler import compile_pattern as compiled_pattern
from millstream.codegen.udas import uda_compiler
from millstream.codegen.udas.share_window import can_share, share_window
from millstream.ir.python_aggregate import PythonBody
from millstream.ir.typed_nodes import Body
from millstream.plan.nodes import BaseAggregate, InOrder, Node, OverAggregate, PatternMatch, WindowAggregate
from millstream.plan.uda_versions import UdaStrategy, UdaVersion, over_version
from millstream.program.program import Program
from millstream.program.python_program import PythonProgram
from millstream.quantity import Rows
from millstream.types import Field

AnyBody = Body | PythonBody


def programs_of(plan: Node) -> list[Program]:
    """The different programs of a plan; aggregates in Python have none."""
    return list({program.digest: program for program in _found(plan)}.values())


def over_mode(over: OverCall, version: UdaVersion) -> tuple[str, AnyBody | None]:
    """The mode of a program, and the body that sees what is left when a tuple has left."""
    assert over.call.bodies is not None
    match version.way:
        case UdaStrategy.RUNNING:
            return uda_compiler.RUNNING, None
        case UdaStrategy.TUMBLE:
            return uda_compiler.TUMBLE, None
        case UdaStrategy.ACTIVE:
            return uda_compiler.ACTIVE, over.call.bodies.base
        case UdaStrategy.CONTENT:
            return uda_compiler.CONTENT, None
        case UdaStrategy.PANES:
            return uda_compiler.RANGE if version.follows else uda_compiler.AGAIN, None
        case UdaStrategy.WINDOW:
            reach = over.frame.preceding
            return uda_compiler.ROWS if reach is None or isinstance(reach, Rows) else uda_compiler.RANGE, None


def sharing(overs: Sequence[OverCall]) -> list[list[int]]:
    """Groups of calls, by number: those in a group follow the same window and leave its tuples alone."""
    groups: dict[object, list[int]] = {}
    for number, over in enumerate(overs):
        version = over_version(over)
        shares = (
            version.way is UdaStrategy.WINDOW and isinstance(version.body, Body) and can_share(version.body)
        )
        groups.setdefault(("window", over.frame.preceding) if shares else number, []).append(number)
    return list(groups.values())


def shared_body(overs: Sequence[OverCall]) -> tuple[Body, list[tuple[int, int]]]:
    """The body of calls that share a window; its arguments are (number of a call, number of its argument)."""
    bodies = [body for over in overs if isinstance(body := over_version(over).body, Body)]
    known: dict[tuple[str, object], tuple[tuple[int, int], Field]] = {}
    places = []
    for number, (over, body) in enumerate(zip(overs, bodies, strict=True)):
        own = []
        for i, (argument, parameter) in enumerate(zip(over.call.arguments, body.parameters, strict=True)):
            key = argument.sql, parameter.type
            known.setdefault(key, ((number, i), parameter))
            own.append(list(known).index(key))
        places.append(own)
    parameters = tuple(parameter for _, parameter in known.values())
    return share_window(bodies, places, parameters), [argument for argument, _ in known.values()]


def _found(plan: Node) -> Iterator[Program]:
    for node in plan.walk():
        match node:
            case OverAggregate():
                yield from _over([over for over in node.calls if over.call.bodies is not None])
            case WindowAggregate():
                on_table = any(isinstance(below, InOrder) for below in node.walk())
                yield from _gathered(
                    node.aggregates, uda_compiler.WHOLE_TABLE if on_table else uda_compiler.CONTENT
                )
            case BaseAggregate():
                yield from _gathered(node.aggregates, uda_compiler.BASE)
            case PatternMatch() if node.pattern.form is not None:
                form = with_programs(node.pattern.form, _in_pattern)
                sources = (getattr(measure.aggregation, "source", None) for measure in form.measures)
                yield compiled_pattern(form)
                yield from (source for source in sources if isinstance(source, Program))


def _over(overs: Sequence[OverCall]) -> Iterator[Program]:
    for group in sharing(overs):
        first = overs[group[0]]
        version = over_version(first)
        mode, left = over_mode(first, version)
        body = shared_body([overs[i] for i in group])[0] if len(group) > 1 else version.body
        if not isinstance(body, Body):
            continue
        yield uda_compiler.compile_uda(body, mode, left if isinstance(left, Body) else None)
        panes = first.call.bodies.panes if first.call.bodies is not None else None
        if version.way is UdaStrategy.PANES and panes is not None and isinstance(panes.pane, Body):
            yield uda_compiler.compile_uda(panes.pane, uda_compiler.TUMBLE)


def _gathered(calls: Iterable[AggregateCall], mode: str) -> Iterator[Program]:
    for call in calls:
        body = None if call.bodies is None else call.bodies.base or call.bodies.window
        if isinstance(body, Body):
            yield uda_compiler.compile_uda(body, mode)


def _in_pattern(body: AnyBody) -> Program | PythonProgram:
    if isinstance(body, PythonBody):
        # The code is shipped nowhere from here.
        return PythonProgram.of(body, uda_compiler.CONTENT, lambda _: b"")
    return uda_compiler.compile_uda(body, uda_compiler.CONTENT)
