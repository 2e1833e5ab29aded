"""EXPLAIN PHYSICAL: a physical plan as an indented tree, results at the top, without Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from functools import singledispatch

from millstream.analysis.queries.resolved_expression import Expr
from millstream.catalog.entries import (
    HeartbeatPromise,
    OrderedPerPromise,
    Promise,
    PunctuationPromise,
    SlackPromise,
)
from millstream.kernels import kernel_specs, specs
from millstream.kernels.kernel_specs import KernelSpec
from millstream.kernels.registry import kernel_name
from millstream.masking import masked
from millstream.physical import nodes
from millstream.physical.node import Column, Guard, PhysicalNode, Role
from millstream.physical.nodes import Partition, StageInput
from millstream.plan import node_labels
from millstream.program.program import Program
from millstream.stage.pipeline import TIME
from millstream.stage.program_discovery import programs
from millstream.types import Type

_HIDDEN = "__ms_"


def explained(plan: PhysicalNode) -> str:
    """Return a physical plan as text."""
    stages = {id(stage): i + 1 for i, stage in enumerate(nodes.stages_of(plan))}
    lines: list[str] = []
    _write(plan, "", "", stages, lines)
    return masked("\n".join(lines))


def _write(node: PhysicalNode, lead: str, below: str, stages: dict[int, int], lines: list[str]) -> None:
    while isinstance(node, nodes.Compute) and _only_sorts(node):
        node = node.input
    number = f" {stages[id(node)]}" if isinstance(node, nodes.Stage) else ""
    lines.append(f"{lead}{type(node).__name__}{number}{_lead(label(node))}")
    inputs: list[PhysicalNode | StageInput] = list(node.inputs)
    if isinstance(node, nodes.Stage):
        lines += [f"{below}│  {line}" for line in _stage_lines(node)]
        inputs = list(node.sources)
    for i, child in enumerate(inputs):
        last = i == len(inputs) - 1
        branch, inside = below + ("└─ " if last else "├─ "), below + ("   " if last else "│  ")
        if isinstance(child, StageInput):
            lines.append(f"{branch}Compute {_columns(child.columns)}{_lead(_guard(child))}")
            _write(child.node, f"{inside}└─ ", f"{inside}   ", stages, lines)
        else:
            _write(child, branch, inside, stages, lines)


def _lead(text: str) -> str:
    return f"  {text}" if text else ""


def _only_sorts(node: nodes.Compute) -> bool:
    """Tell whether a node says nothing but the order of results, which stands beside Output."""
    hidden = bool(node.hidden) and all(c.role is Role.SORT for c in node.hidden)
    return hidden and node.columns is None and not node.conditions


# ------------------------------------------------------------ nodes


@singledispatch
def label(node: PhysicalNode) -> str:
    """Return what a line says of a node beside its name."""
    return ""


@label.register
def _scan(node: nodes.Scan) -> str:
    stream = node.stream
    time = f"time {stream.timestamp.column} {_type(node.time_type)}" if stream.timestamp.column else (
        f"{stream.timestamp.kind.value} timestamp"
    )  # fmt: skip
    promises = ", ".join(map(_promise, stream.promises)) or "in order"
    what = "bad records of " if node.bad is not None else ""
    alias = node_labels.with_alias(stream.name, node.alias) if node.alias else stream.name
    pending = ["late pending"] if node.late_pending else []
    return "  ".join([f"{what}{alias} from {stream.origin}", time, promises, *pending])


def _promise(promise: Promise) -> str:
    on = f" on {promise.on}" if promise.on else ""
    match promise:
        case SlackPromise():
            return f"slack {promise.amount}{' with late tuples counted' if promise.generous else ''}{on}"
        case OrderedPerPromise():
            return f"in order per {', '.join(promise.columns)}{on}"
        case PunctuationPromise():
            return f"punctuated{on}"
        case HeartbeatPromise():
            return f"heartbeat every {promise.every}{on}"


@label.register
def _table_scan(node: nodes.TableScan) -> str:
    return node_labels.with_alias(node.table.name, node.alias)


@label.register
def _spark_query(node: nodes.SparkQuery) -> str:
    return " ".join(node.text.split())


@label.register
def _rename(node: nodes.Rename) -> str:
    return f"AS {node.alias}"


@label.register
def _compute(node: nodes.Compute) -> str:
    parts = [] if node.columns is None else [_columns(node.columns)]
    parts += [f"time {_text(c.expr)}" for c in node.hidden if c.name == TIME]
    parts += [f"where {' AND '.join(_text(c) for c in node.conditions)}"] if node.conditions else []
    parts += ["late pending"] if node.late_pending else []
    return "  ".join(parts)


@label.register
def _align(node: nodes.Align) -> str:
    return ", ".join(f"{f.name} {_type(f.type)}" for f in node.fields_)


@label.register
def _lookup(node: nodes.Lookup) -> str:
    return f"{node.kind}{f' on {node.condition}' if node.condition is not None else ''}"


@label.register
def _sequence(node: nodes.Sequence) -> str:
    return f"by {', '.join(map(str, node.keys))}"


@label.register
def _arrange(node: nodes.Arrange) -> str:
    return node_labels.arranged(node.arrangement, tuple(c.ref for c in node.layout))


@label.register
def _set_operation(node: nodes.TableSetOperation) -> str:
    return f"{node.kind}{' ALL' if node.all else ''}"


@label.register
def _groups(node: nodes.TableGroups) -> str:
    keys = [f"by {', '.join(str(key.expr) for key in node.group_by)}"] if node.group_by else []
    return "  ".join([*keys, ", ".join(call.text for call in node.aggregates)])


@label.register
def _stage(node: nodes.Stage) -> str:
    keys = ", ".join(map(str, node.keys))
    types = ", ".join(_type(key.type) for key in node.keys)
    parts = {
        Partition.COLUMN: f"partition by {keys} ({types}, the value itself)",
        Partition.HASH: f"partition by {keys} ({types}, hash)",
        Partition.SINGLE: "one shard",
        Partition.SPREAD: "any shard",
    }[node.partition]
    return "  ".join([parts, *(["reports to the next stage"] if node.marked else [])])


@label.register
def _explode(node: nodes.Explode) -> str:
    return node.column


@label.register
def _branch(node: nodes.Branch) -> str:
    return f"of query {node.member + 1}"


@label.register
def _output(node: nodes.Output) -> str:
    order = ["time", *(_text(c.expr).removeprefix(_HIDDEN) for c in node.sorting if c.expr is not None)]
    return f"order by {', '.join(order)}" if node.streaming or node.stored else ""


# ------------------------------------------------------------ stages


def _stage_lines(node: nodes.Stage) -> Iterator[str]:
    if node.late:
        yield "late tuples"
    for kernel in node.kernels:
        yield f"{kernel_name(kernel).rpartition('.')[2]}{_lead(kernel_label(kernel))}"
        yield from (f"  {_program(program)}" for program in programs(kernel))
    if not node.kernels and not node.late:
        yield "tuples that are in time"
    yield from map(str, node.choices)


def _program(program: Program) -> str:
    how = "compiled" if program.is_compiled else "interpreted"
    lines = len(program.source.splitlines())
    return f"program {program.name} {program.digest[:8]} ({lines} lines, {program.mode}, {how})"


@singledispatch
def kernel_label(spec: KernelSpec) -> str:
    """Return what a line says of a kernel beside its name."""
    return ""


@kernel_label.register
def _window(spec: specs.WindowSpec) -> str:
    return "; ".join([_plain(spec.assigner), *map(_aggregate, spec.aggregates)])


@kernel_label.register
def _rank(spec: specs.WindowRankSpec) -> str:
    parts = [f"{call.result} = {call.text}" for call in spec.calls]
    parts += [f"by {', '.join(map(_order, spec.order))}"] if spec.order else []
    parts += [f"limit {spec.limit}"] if spec.limit is not None else []
    parts += [f"offset {spec.offset}"] if spec.offset else []
    return "; ".join(parts)


def _order(key: specs.OrderColumn) -> str:
    return f"{key.name}{' DESC' if key.descending else ''}"


@kernel_label.register
def _over(spec: kernel_specs.OverAggregatesSpec) -> str:
    slide = [_plain(spec.slide)] if spec.slide is not None else []
    first = [f"only {spec.first[0]} up to {spec.first[1]}"] if spec.first is not None else []
    return "; ".join([*(f"{_aggregate(c.aggregate)} {_extent(c)}" for c in spec.calls), *slide, *first])


@kernel_label.register
def _over_udas(spec: kernel_specs.OverUdasSpec) -> str:
    return "; ".join(f"{c.user.program.name} {_reach(c.rows, c.range)}" for c in spec.calls)


@kernel_label.register
def _active(spec: kernel_specs.ActiveAggregateSpec) -> str:
    return f"{_aggregate(spec.call.aggregate)} {_reach(spec.call.rows, spec.call.range)}"


@kernel_label.register
def _stream_udas(spec: kernel_specs.StreamUdasSpec) -> str:
    return "; ".join(call.program.name for call in spec.calls)


@kernel_label.register
def _tie_order(spec: kernel_specs.TieOrderSpec) -> str:
    return f"by {len(spec.ties)} columns"


@kernel_label.register
def _groups_kernel(spec: kernel_specs.GroupsSpec) -> str:
    return "; ".join(map(_aggregate, spec.spec.aggregates))


@kernel_label.register
def _set_kernel(spec: kernel_specs.SetOperationsSpec) -> str:
    return f"{spec.spec.kind}{' ALL' if spec.spec.all else ''}"


def _extent(spec: specs.OverSpec) -> str:
    until = spec.rows_until or spec.range_until
    if not until:
        return _reach(spec.rows, spec.range)
    start = spec.rows if spec.rows is not None else spec.range
    unit = "rows " if spec.rows_until else ""
    return f"from {'the first' if start is None else start} to {until} {unit}before"


def _reach(rows: int | None, range_: float | None) -> str:
    if rows is not None:
        return f"over {rows} rows before"
    return "over all" if range_ is None else f"over {range_} before"


def _aggregate(spec: specs.AggregateSpec) -> str:
    distinct = "DISTINCT " if spec.distinct else ""
    names = [name for name in (spec.argument, *spec.others) if name is not None]
    where = f" where {spec.condition}" if spec.condition is not None else ""
    return f"{spec.result} = {spec.function}({distinct}{', '.join(names) or '*'}){where}"


def _plain(spec: object) -> str:
    """Return a specification as its name and the fields that are no defaults."""
    assert is_dataclass(spec)
    told = [
        f"{one.name} {getattr(spec, one.name)}"
        for one in fields(spec)
        if getattr(spec, one.name) not in (one.default, None)
    ]
    return " ".join([type(spec).__name__, *told])


# ------------------------------------------------------------ columns


def _columns(columns: Iterable[Column]) -> str:
    return ", ".join(_column(c) for c in columns if not c.name.startswith(_HIDDEN)) or "nothing"


def _column(column: Column) -> str:
    unknown = "" if column.type.is_known else " ?"
    return f"{column.ref} := {_text(column.expr)}{unknown}"


def _text(expr: Expr | None) -> str:
    return "" if expr is None else str(expr).replace("`", "")


def _guard(source: StageInput) -> str:
    pending = source.source.name != "" and source.guard is not Guard.UNMARKED
    return "late pending" if pending else ""


def _type(type_: Type) -> str:
    return str(type_).upper() if type_.is_known else "?"
