"""Sharing: queries that read the same streams become stages over one scan, and each takes its branch.

Patterns over the same tuples even become one stage: otherwise each would have its tuples packed, shipped,
judged and put in order for itself, and that is about half of what a search costs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from millstream.kernels import kernel_specs
from millstream.kernels.column_names import BRANCH
from millstream.kernels.kernel_specs import PatternGroupSpec
from millstream.kernels.patterns.tagged_rows import branch_name
from millstream.kernels.specs import PatternSpec, WindowSpec
from millstream.physical import expressions as ex
from millstream.physical.node import Column, PhysicalNode, Role, schema_of
from millstream.physical.nodes import (
    Branch,
    Compute,
    Output,
    Rename,
    Scan,
    SearchedPattern,
    Stage,
    StageInput,
    stages_of,
)
from millstream.physical.operators.pattern_group import group_patterns
from millstream.stage.pipeline import TAG, tagged_name
from millstream.types import INT

_SHARED = (
    kernel_specs.ReorderSpec,
    kernel_specs.RetimeSpec,
    kernel_specs.ArrivalNumbersSpec,
    kernel_specs.OverAggregatesSpec,
    kernel_specs.OverUdasSpec,
    kernel_specs.ActiveAggregateSpec,
    kernel_specs.ActiveUdaSpec,
    kernel_specs.StreamUdasSpec,
    PatternSpec,
    WindowSpec,
)
"""Kernels of queries that can share: the results of all others may be kept, each by its own query."""


@dataclass(frozen=True)
class SharedStage:
    """A stage of one query, or of several queries by their numbers, each of which has a branch."""

    stage: Stage
    members: tuple[int, ...]


@dataclass(frozen=True)
class SharedPlan:
    """Stages over one reading of every stream, and for each query what stands above its branch."""

    stages: tuple[SharedStage, ...]
    plans: tuple[PhysicalNode, ...]


def share_groups(plans: Sequence[PhysicalNode | None]) -> list[list[int]]:
    """Return the numbers of plans in groups: those that have a stream in common, also through others.

    A plan of None shares nothing.
    """
    groups: list[tuple[set[str], list[int]]] = []
    for i, plan in enumerate(plans):
        streams = set() if plan is None else shared_streams(plan)
        mine = [group for group in groups if group[0] & streams]
        together = (
            streams.union(*(g[0] for g in mine)),
            sorted([i, *(n for g in mine for n in g[1])]),
        )
        groups = [group for group in groups if group not in mine] + [together]
    return sorted(members for _, members in groups)


def shared_streams(plan: PhysicalNode) -> set[str]:
    """Return the streams that a plan can read with others: it is one stage over a source, and no more."""
    stage = only_stage(plan)
    if stage is None or not all(isinstance(kernel, _SHARED) for kernel in stage.kernels):
        return set()
    scans = [_scan(source.node) for source in stage.sources]
    if len(scans) != 1 or any(scan is None for scan in scans):
        return set()
    return {scan.stream.name.lower() for scan in scans if scan is not None}


def share(plans: Sequence[Output]) -> SharedPlan:
    """Rewrite plans over the same streams: as few stages as possible, and a branch of them for each plan."""
    stages = [stage for plan in plans if (stage := only_stage(plan)) is not None]
    groups: list[list[int]] = []
    for number, stage in enumerate(stages):
        alike = (group for group in groups if search_together(stages[group[0]], stage))
        found = next(alike, None)
        if found is None:
            groups.append([number])
        else:
            found.append(number)
    shared = tuple(SharedStage(_merged([stages[n] for n in group]), tuple(group)) for group in groups)
    above = []
    for number, (plan, stage) in enumerate(zip(plans, stages, strict=True)):
        tag, one = next((t, s) for t, s in enumerate(shared) if number in s.members)
        above.append(_over_branch(plan, stage, _branch(number, stage, one, tag if len(shared) > 1 else None)))
    return SharedPlan(shared, tuple(above))


def only_stage(plan: PhysicalNode) -> Stage | None:
    """Return the stage of a plan that has no other one, and whose other nodes look at nothing else."""
    stages = stages_of(plan)
    if len(stages) != 1 or not stages[0].streaming or stages[0].late:
        return None
    above = [node for node in plan.walk() if node is not stages[0]]
    leaves = [node for node in above if not node.inputs]
    return stages[0] if all(isinstance(leaf, Scan) for leaf in leaves) and len(leaves) == 1 else None


def _scan(node: PhysicalNode) -> Scan | None:
    """Return the scan below operators that pass tuples as they were read."""
    while isinstance(node, Compute | Rename):
        node = node.input
    return node if isinstance(node, Scan) and node.late_pending and node.bad is None else None


def _over_branch(node: PhysicalNode, stage: Stage, branch: Branch) -> PhysicalNode:
    if node is stage:
        return branch
    return node.map_inputs(lambda below: _over_branch(below, stage, branch))


def _branch(number: int, stage: Stage, shared: SharedStage, tag: int | None) -> Branch:
    """Return the branch of a query: its rows, and its columns by their names among those of all."""
    inner = {c.name: c.name for c in stage.layout}
    mine = None
    if len(shared.members) > 1:
        place = shared.members.index(number)
        inner |= {c.name: branch_name(place, c.name) for c in stage.output}
        mine = (BRANCH if tag is None else tagged_name(tag, BRANCH), place)
    columns = [(own if tag is None else tagged_name(tag, own), name) for name, own in inner.items()]
    return Branch(number, tuple(columns), None if tag is None else (TAG, tag), mine, stage)


def search_together(one: Stage, other: Stage) -> bool:
    """Tell whether two stages search in the same tuples, divided into the same partitions."""
    mine, theirs = one.pattern, other.pattern
    if mine is None or theirs is None or not mine.values or not theirs.values:
        return False
    if [key.sql for key in mine.keys] != [key.sql for key in theirs.keys]:
        return False
    stripped = [
        replace(s, kernels=(), output=(), notes=(), sources=_without_columns(s)) for s in (one, other)
    ]
    return stripped[0] == stripped[1]


def _without_columns(stage: Stage) -> tuple[StageInput, ...]:
    return tuple(replace(source, columns=()) for source in stage.sources)


def _merged(stages: Sequence[Stage]) -> Stage:
    """Return one stage for patterns over the same tuples."""
    first = stages[0]
    if len(stages) == 1:
        return first
    searches = [(_pattern(stage), _spec(stage)) for stage in stages]
    whole = group_patterns(searches)
    branches = tuple(
        kernel_specs.PatternBranch(spec, schema_of(stage.output))
        for spec, stage in zip(whole.specs, stages, strict=True)
    )
    (source,) = first.sources
    own = _pattern(first).values
    columns = [
        Column(name, type_, ex.cast(value, type_), Role.ARGUMENT)
        for name, (value, type_) in whole.values.items()
    ]
    others = [column for column in source.columns if column.name not in own]
    output = [
        replace(column, name=branch_name(i, column.name))
        for i, stage in enumerate(stages)
        for column in stage.output
    ]
    return replace(
        first,
        sources=(replace(source, columns=(*columns, *others)),),
        kernels=(*first.kernels[:-1], PatternGroupSpec(branches)),
        output=(*output, Column(BRANCH, INT, role=Role.RESULT)),
        notes=tuple(note for stage in stages for note in stage.notes),
        pattern=None,
    )


def _pattern(stage: Stage) -> SearchedPattern:
    assert stage.pattern is not None
    return stage.pattern


def _spec(stage: Stage) -> PatternSpec:
    spec = stage.kernels[-1]
    assert isinstance(spec, PatternSpec)
    return spec
