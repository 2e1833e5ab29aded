"""From calls over windows of their own to the kernels that run them: nothing here needs Spark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa

from millstream.analysis.queries.call_nodes import AggregateCall, OverCall
from millstream.codegen.udas import uda_compiler
from millstream.ir.python_aggregate import PythonBody
from millstream.ir.typed_nodes import Body
from millstream.kernels.core.kernel import Kernel
from millstream.kernels.specs import (
    AggregateSpec,
    OverSpec,
    OverUdaSpec,
    PaneSpec,
    SlideSpec,
    UdaSpec,
)
from millstream.kernels.udas.compiled_machine import returned_fields
from millstream.kernels.udas.returned_rows import rows_type
from millstream.plan.generated_programs import over_mode, shared_body, sharing
from millstream.plan.uda_versions import UdaStrategy, UdaVersion, over_version
from millstream.program.program import Program
from millstream.program.python_program import PythonProgram
from millstream.quantity import Quantity, Rows

AnyBody = Body | PythonBody
MakeKernel = Callable[[], Kernel]
Units = Callable[[Quantity], int | float]
"""An amount as a number on the timestamp."""

_FOR_EVER = 2**62


@dataclass(frozen=True)
class OverKernels:
    """Kernels for all calls of a stage, and what they add to tuples.

    Of ``apart`` calls the columns of a result stand side by side; ``listed`` ones have a list of rows.
    """

    kernels: list[MakeKernel]
    added: list[pa.Field]
    apart: list[tuple[AggregateCall, UdaSpec, str]]
    listed: list[tuple[AggregateCall, str]]


def over_spec(over: OverCall, aggregate: AggregateSpec, units: Units) -> OverSpec:
    """An aggregate that kernels compute themselves."""
    reach = over.frame.preceding
    if reach is None:
        return OverSpec(aggregate)
    return (
        OverSpec(aggregate, rows=reach.count)
        if isinstance(reach, Rows)
        else OverSpec(aggregate, range=units(reach))
    )


def user_over_spec(
    over: OverCall, units: Units, name: str, result: str
) -> tuple[AnyBody, OverSpec | OverUdaSpec]:
    """A user's aggregate in the version that the semantics choose, and the body that takes its arguments."""
    version, call = over_version(over), over.call
    if version.way is UdaStrategy.CONTENT:
        return version.body, over_spec(over, content_spec(call, version.body, name, result), units)
    taking = version.body
    if version.way is UdaStrategy.PANES:
        assert call.bodies is not None
        assert call.bodies.panes is not None
        taking = call.bodies.panes.pane
    program = program_of(version.body, *over_mode(over, version))
    user = UdaSpec(program, names_of(taking, name), _results(version.body, result), result)
    return taking, _user_over_spec(over, version, user, taking, units)


def program_of(body: AnyBody, mode: str, left: AnyBody | None = None) -> Program | PythonProgram:
    """What kernels run; ``left`` sees what is left when a tuple has left."""
    if isinstance(body, PythonBody):
        # Lambdas and classes that are defined in a function or at the prompt can be shipped as well.
        from pyspark.cloudpickle import dumps

        return PythonProgram.of(body, mode, dumps)
    return uda_compiler.compile_uda(body, mode, left if isinstance(left, Body) else None)


def _user_over_spec(
    over: OverCall, version: UdaVersion, user: UdaSpec, taking: AnyBody, units: Units
) -> OverUdaSpec:
    reach = over.frame.preceding
    slide = over.slide.count if isinstance(over.slide, Rows) and over.emit_every is None else 1
    if version.way is UdaStrategy.PANES:
        assert isinstance(taking, Body)
        every = slide // version.pane if over.emit_every is None else 1
        panes = PaneSpec(
            uda_compiler.compile_uda(taking, uda_compiler.TUMBLE), version.pane, version.over, every
        )
        return OverUdaSpec(user, panes=panes)
    if reach is None:
        return OverUdaSpec(user, rows=_FOR_EVER if version.way is UdaStrategy.WINDOW else None)
    if isinstance(reach, Rows):
        return OverUdaSpec(user, rows=reach.count, slide=slide)
    return OverUdaSpec(user, range=units(reach))


def content_spec(
    call: AggregateCall, body: AnyBody, name: str, result: str, mode: str = uda_compiler.CONTENT
) -> AggregateSpec:
    """A user's aggregate over the content of windows, as kernels compute what needs all of it."""
    program = program_of(body, mode)
    first, *others = names_of(body, name) or (f"{name}_0",)
    return AggregateSpec(
        "user",
        first,
        result,
        rows_type(program),
        others=tuple(others),
        parameters=(program,),
        distinct=call.distinct,
        condition=condition_of(call, name),
    )


def over_kernels(
    calls: Sequence[OverCall], specs: Sequence[OverSpec | OverUdaSpec], slide: SlideSpec | None
) -> OverKernels:
    """The kernels for calls with the same partitions and the same slide."""
    from millstream.kernels.core.reorder import Reorder
    from millstream.kernels.over.over_aggregate import OverAggregate
    from millstream.kernels.udas.over_uda import OverUda

    own = _sharing([(c, spec) for c, spec in zip(calls, specs, strict=True) if isinstance(spec, OverUdaSpec)])
    others = tuple(spec for spec in specs if isinstance(spec, OverSpec))
    kernels: list[MakeKernel] = [partial(Reorder)]
    lists = slide is not None and (bool(others) or not all(map(_chooses_yields, calls)))
    if calls[0].active_expiration:
        kernels.append(_active(own, others))
    elif lists:
        # What tuples give is known before it is known which of them give something.
        kernels += [partial(OverUda, own, together=True)] if own else []
        kernels.append(partial(OverAggregate, others, slide))
    else:
        kernels += [partial(OverAggregate, others, slide)] if others else []
        kernels += [partial(OverUda, own)] if own else []
    added, apart, listed = [], [], []
    for call, spec in zip(calls, specs, strict=True):
        if isinstance(spec, OverSpec):
            added.append(pa.field(spec.aggregate.result, spec.aggregate.type))
            listed += [(call.call, spec.aggregate.result)] if call.call.user is not None else []
        elif lists:
            added.append(pa.field(spec.user.whole, rows_type(spec.user.program)))
            listed.append((call.call, spec.user.whole))
        else:
            added += returned_fields(spec.user.program, spec.user.results)
            apart.append((call.call, spec.user, spec.user.whole))
    return OverKernels(kernels, added, apart, listed)


def _sharing(given: Sequence[tuple[OverCall, OverUdaSpec]]) -> tuple[OverUdaSpec, ...]:
    """Aggregates that follow the same window become one, if they leave its tuples alone."""
    groups = sharing([over for over, _ in given])
    return tuple(
        _shared([given[i] for i in group]) if len(group) > 1 else given[group[0]][1] for group in groups
    )


def _shared(group: Sequence[tuple[OverCall, OverUdaSpec]]) -> OverUdaSpec:
    body, arguments = shared_body([over for over, _ in group])
    first = group[0][1]
    program = uda_compiler.compile_uda(body, first.user.program.mode)
    user = UdaSpec(program, tuple(group[number][1].user.arguments[i] for number, i in arguments), ())
    return replace(first, user=user, members=tuple(spec.user for _, spec in group))


def _active(own: tuple[OverUdaSpec, ...], others: tuple[OverSpec, ...]) -> MakeKernel:
    from millstream.kernels.over.active_expiration import ActiveAggregate
    from millstream.kernels.udas.active_uda import ActiveUda

    return partial(ActiveUda, own[0]) if own else partial(ActiveAggregate, others[0])


def _chooses_yields(over: OverCall) -> bool:
    """Whether what is run says itself which tuples give results."""
    if over.call.user is None or not isinstance(over.slide, Rows) or over.emit_every is not None:
        return False
    version = over_version(over)
    by_rows = version.way is UdaStrategy.WINDOW and isinstance(over.frame.preceding, Rows)
    return by_rows or version.way in (UdaStrategy.TUMBLE, UdaStrategy.PANES)


def names_of(body: AnyBody, name: str) -> tuple[str, ...]:
    """The columns of the arguments of a call."""
    return tuple(f"{name}_{i}" for i in range(len(body.parameters)))


def condition_of(call: AggregateCall, name: str) -> str | None:
    """The column of what FILTER says, if there is one."""
    return None if call.filter is None else f"{name}_where"


def _results(body: AnyBody, result: str) -> tuple[str, ...]:
    return tuple(f"{result}_{i}" for i in range(len(body.returns)))
