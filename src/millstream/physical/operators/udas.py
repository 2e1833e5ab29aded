"""Calls of users' aggregates: the columns that they are shipped, and the columns of what they return."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from millstream.analysis.queries.call_nodes import AggregateCall
from millstream.analysis.queries.resolved_expression import Expr
from millstream.codegen.udas.uda_compiler import BASE, CONTENT
from millstream.kernels.result_types import rows_type
from millstream.kernels.specs import ROWS, AggregateSpec, UdaSpec
from millstream.physical import expressions as ex
from millstream.physical.node import Column, PhysicalNode, Role
from millstream.physical.nodes import Compute, Explode
from millstream.physical.programs import AnyBody, AnyProgram, Programs
from millstream.stage.pipeline import MARK
from millstream.types import Field, Type, array, struct


def shipped_arguments(call: AggregateCall, body: AnyBody, name: str) -> dict[str, Expr]:
    """Return the arguments of a call as a body takes them, and its FILTER."""
    arguments = {}
    for i, (argument, parameter) in enumerate(zip(call.arguments, body.parameters, strict=True)):
        same = argument.type == parameter.type
        arguments[f"{name}_{i}"] = argument if same else ex.cast(argument, parameter.type)
    if not arguments:
        arguments[f"{name}_0"] = ex.TRUE  # something has to tell how many tuples there are
    condition = condition_of(call, name)
    if condition is not None and call.filter is not None:
        arguments[condition] = call.filter
    return arguments


def base_spec(
    call: AggregateCall, programs: Programs, name: str, result: str
) -> tuple[dict[str, Expr], UdaSpec]:
    """Return what a call on a bare stream is shipped, and its specification."""
    assert call.bodies is not None
    body = call.bodies.base
    assert body is not None
    results = tuple(f"{result}_{i}" for i in range(len(body.returns)))
    program = programs.program(body, BASE)
    spec = UdaSpec(program, names_of(body, name), results, condition=condition_of(call, name))
    return shipped_arguments(call, body, name), spec


def bracket_spec(
    call: AggregateCall, programs: Programs, name: str, result: str, mode: str = CONTENT
) -> tuple[dict[str, Expr], AggregateSpec]:
    """Return what a call over bracket windows is shipped, and its specification."""
    assert call.bodies is not None
    body = call.bodies.base or call.bodies.window
    assert body is not None
    program = programs.program(body, mode)
    return shipped_arguments(call, body, name), content_spec(call, body, program, name, result)


def content_spec(
    call: AggregateCall, body: AnyBody, program: AnyProgram, name: str, result: str
) -> AggregateSpec:
    """Return a user's aggregate over the content of windows, as kernels compute what needs all of it."""
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


def returned_columns(program: AnyProgram, names: Sequence[str]) -> list[Column]:
    """Return the columns of a result under these names."""
    returned = zip(names, program.returns, strict=True)
    return [Column(name, field.type, role=Role.RESULT) for name, field in returned]


def rows_column(program: AnyProgram, name: str) -> Column:
    """Return the column of all rows that are returned for a tuple or a window."""
    row = struct(*(Field(f"r{i}", f.type) for i, f in enumerate(program.returns)))
    return Column(name, array(row), role=Role.RESULT)


def exploded(node: PhysicalNode, calls: Sequence[tuple[AggregateCall, str]]) -> PhysicalNode:
    """Return a row for each that aggregates returned for a window; reports that stand among them pass."""
    for call, name in calls:
        listed = next(c.type for c in node.layout if c.name == name)
        assert listed.element is not None
        row = listed.element
        node = Explode(node, name, row, node.has(MARK))
        fields = [Expr((f"`{name}`.`{f.name}`",), f.type) for f in row.fields]
        node = _replaced(node, {name: _whole(call, fields)}, [])
    return node


def collected(node: PhysicalNode, calls: Mapping[str, AggregateCall]) -> PhysicalNode:
    """Return the columns of returned rows as one column for each call, a struct if it is a row."""
    parts = {name: [f"{name}_{i}" for i in range(width_of(call))] for name, call in calls.items()}
    return _together(node, {name: (calls[name], own) for name, own in parts.items()})


def put_together(node: PhysicalNode, specs: Sequence[tuple[AggregateCall, UdaSpec, str]]) -> PhysicalNode:
    """Return the columns of each result as one column, a struct if it is a row."""
    return _together(node, {name: (call, spec.results) for call, spec, name in specs})


def _together(node: PhysicalNode, calls: Mapping[str, tuple[AggregateCall, Sequence[str]]]) -> PhysicalNode:
    if not calls:
        return node
    types = {c.name: c.type for c in node.layout}
    made = {
        name: _whole(call, [ex.column(part, types[part]) for part in parts])
        for name, (call, parts) in calls.items()
    }
    return _replaced(node, made, [part for _, parts in calls.values() for part in parts])


def _replaced(node: PhysicalNode, made: Mapping[str, Expr], parts: Sequence[str]) -> PhysicalNode:
    """Return the columns of a stage with some in place of others."""
    kept = [
        Column(c.name, c.type, ex.column(c.name, c.type), c.role)
        for c in node.shown
        if c.name not in made and c.name not in parts
    ]
    return Compute(node, (*kept, *(Column(name, e.type, e, Role.RESULT) for name, e in made.items())))


def width_of(call: AggregateCall) -> int:
    """Return the number of columns of a result."""
    return len(call.type.fields) if _is_row(call) else 1


def names_of(body: AnyBody, name: str) -> tuple[str, ...]:
    """Return the columns of the arguments of a call."""
    return tuple(f"{name}_{i}" for i in range(len(body.parameters)))


def condition_of(call: AggregateCall, name: str) -> str | None:
    """Return the column of a FILTER, if there is one."""
    return None if call.filter is None else f"{name}_where"


def _whole(call: AggregateCall, parts: Sequence[Expr]) -> Expr:
    """Return a result from its columns; what combines panes may return them in types of its own."""
    if not _is_row(call):
        return _as(parts[0], call.type)
    fields = zip(parts, call.type.fields, strict=True)
    return ex.struct_of([(field.name, _as(part, field.type)) for part, field in fields], call.type)


def _as(part: Expr, type_: Type) -> Expr:
    return part if part.type == type_ else ex.cast(part, type_)


def _is_row(call: AggregateCall) -> bool:
    return call.name == ROWS or (call.user is not None and call.user.returns_row)
