"""Programs of a plan: generated here, each once.

Every aggregate of the user's runs one of its versions, in a mode that depends on its window; equal calls run
one program. EXPLAIN CODE lists the programs of a plan, so it shows without Spark what is run with it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from millstream.analysis.queries.call_nodes import OverCall
from millstream.codegen.patterns import pattern_compiler
from millstream.codegen.udas import uda_compiler
from millstream.codegen.udas.share_window import can_share, share_window
from millstream.ir.pattern import Pattern
from millstream.ir.python_aggregate import PythonBody
from millstream.ir.typed_nodes import Body
from millstream.plan.uda_versions import UdaStrategy, UdaVersion, over_version
from millstream.program.program import Program
from millstream.program.python_program import Dumps, PythonProgram
from millstream.quantity import Rows
from millstream.types import Field

AnyBody = Body | PythonBody
AnyProgram = Program | PythonProgram


def _not_shipped(_: Any) -> bytes:
    """Pickle nothing: the code of a plan that is only explained is shipped nowhere."""
    return b""


class Programs:
    """Generator of the programs of one query, which remembers what it has generated.

    ``dumps`` pickles code in Python, so that it can be shipped.
    """

    def __init__(self, dumps: Dumps = _not_shipped) -> None:
        self._dumps = dumps
        self._versions: list[tuple[OverCall, UdaVersion]] = []
        self._programs: list[tuple[AnyBody, str, AnyBody | None, AnyProgram]] = []
        self._patterns: list[tuple[Pattern, Program]] = []

    def version(self, over: OverCall) -> UdaVersion:
        """Return the version of an aggregate of the user's that runs over a window of its own."""
        for known, version in self._versions:
            if _same_call(known, over):
                return version
        version = over_version(over)
        self._versions.append((over, version))
        return version

    def program(self, body: AnyBody, mode: str, left: AnyBody | None = None) -> AnyProgram:
        """Return what kernels run; ``left`` sees what is left when a tuple has left."""
        for known, own, beside, program in self._programs:
            if own == mode and known == body and beside == left:
                return program
        if isinstance(body, PythonBody):
            made: AnyProgram = PythonProgram.of(body, mode, self._dumps)
        else:
            made = uda_compiler.compile_uda(body, mode, left if isinstance(left, Body) else None)
        self._programs.append((body, mode, left, made))
        return made

    def compiled(self, body: Body, mode: str) -> Program:
        """Return the program of an aggregate in ESL."""
        program = self.program(body, mode)
        assert isinstance(program, Program)
        return program

    def pattern(self, form: Pattern) -> Program:
        """Return the program that searches for a pattern."""
        for known, program in self._patterns:
            if known == form:
                return program
        made = pattern_compiler.compile_pattern(form)
        self._patterns.append((form, made))
        return made

    def sharing(self, overs: Sequence[OverCall]) -> list[list[int]]:
        """Group calls, by number: those in a group follow one window and leave its tuples alone."""
        groups: dict[object, list[int]] = {}
        for number, over in enumerate(overs):
            version = self.version(over)
            shares = (
                version.way is UdaStrategy.WINDOW
                and isinstance(version.body, Body)
                and can_share(version.body)
            )
            groups.setdefault(("window", over.frame.preceding) if shares else number, []).append(number)
        return list(groups.values())

    def shared_body(self, overs: Sequence[OverCall]) -> tuple[Body, list[tuple[int, int]]]:
        """Return the body of calls that share a window, and its arguments: (call, number of its argument)."""
        bodies = [body for over in overs if isinstance(body := self.version(over).body, Body)]
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


def over_mode(over: OverCall, version: UdaVersion) -> tuple[str, AnyBody | None]:
    """Return the mode of a program, and the body that sees what is left when a tuple has left."""
    assert over.call.bodies is not None
    match version.way:
        case UdaStrategy.RUNNING:
            return uda_compiler.RUNNING, None
        case UdaStrategy.TUMBLE:
            return uda_compiler.TUMBLE, None
        case UdaStrategy.ACTIVE:
            return uda_compiler.ACTIVE, over.call.bodies.base
        case UdaStrategy.CONTENT | UdaStrategy.TIME_PANES:
            return uda_compiler.CONTENT, None
        case UdaStrategy.PANES:
            return uda_compiler.RANGE if version.follows else uda_compiler.AGAIN, None
        case UdaStrategy.WINDOW:
            reach = over.frame.preceding
            by_rows = reach is None or isinstance(reach, Rows)
            return uda_compiler.ROWS if by_rows else uda_compiler.RANGE, None


def _same_call(one: OverCall, other: OverCall) -> bool:
    """Tell whether the same version runs for two calls."""
    if one is other:
        return True
    told = [(o.frame, o.slide, o.emit_every, o.active_expiration, o.call.distinct) for o in (one, other)]
    filtered = [o.call.filter is None for o in (one, other)]
    return told[0] == told[1] and filtered[0] == filtered[1] and one.call.bodies == other.call.bodies


Generate = Callable[[AnyBody, str], AnyProgram]
