"""Patterns that are searched for in the same tuples become one stage.

Otherwise each would have its tuples packed, shipped, judged and put in order for itself, and that is about
half of what a search costs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa

from millstream.kernels.patterns.tagged_rows import Branch, branch_name, branched_schema
from millstream.spark.planning.pattern_group import PatternGroup, group_patterns
from millstream.spark.planning.pattern_stage import as_columns
from millstream.spark.planning.stage_builder import StageRequest, made
from millstream.stage.shard import result_schema


@dataclass(frozen=True)
class PatternBundle:
    """A stage for one query, or for several: then each has a branch of its own."""

    wanted: StageRequest
    members: tuple[int, ...]
    """The queries, by their numbers."""
    outputs: tuple[pa.Schema, ...] = ()

    @property
    def is_branched(self) -> bool:
        return len(self.members) > 1

    def columns(self, member: int) -> dict[str, str]:
        """The columns of one query's results, by the names that the stage has for them."""
        names = result_schema(self.wanted.pipeline).names
        if not self.is_branched:
            return {name: name for name in names}
        branch = self.members.index(member)
        own = {branch_name(branch, name): name for name in self.outputs[branch].names}
        shared = branched_schema(self.outputs).names
        return own | {name: name for name in names if name not in shared}


def bundles(wanted: Sequence[StageRequest]) -> list[PatternBundle]:
    """The stages of some queries, as few as possible."""
    groups: list[list[int]] = []
    for number, want in enumerate(wanted):
        alike = (group for group in groups if _go_together(wanted[group[0]], want))
        found = next(alike, None)
        if found is None:
            groups.append([number])
        else:
            found.append(number)
    return [_bundle([wanted[number] for number in group], tuple(group)) for group in groups]


def _go_together(one: StageRequest, other: StageRequest) -> bool:
    """Whether two stages search in the same tuples, divided into the same partitions."""
    mine, theirs = one.searched, other.searched
    if mine is None or theirs is None or not mine.search.values or not theirs.search.values:
        return False
    if mine.input != theirs.input or [k.sql for k in mine.search.keys] != [k.sql for k in theirs.search.keys]:
        return False
    inputs = [tuple(replace(i, columns=pa.schema([])) for i in want.pipeline.inputs) for want in (one, other)]
    pipelines = one.pipeline, other.pipeline
    told = [(p.time_type, p.ordered, p.marked, p.late) for p in pipelines]
    return inputs[0] == inputs[1] and told[0] == told[1] and one.parallel == other.parallel


def _bundle(wanted: Sequence[StageRequest], members: tuple[int, ...]) -> PatternBundle:
    if len(wanted) == 1:
        return PatternBundle(wanted[0], members)
    from millstream.kernels.patterns.pattern_match import PatternMatches

    first, searched = wanted[0], wanted[0].searched
    assert searched is not None
    whole = group_patterns([want.searched.search for want in wanted if want.searched is not None])
    branches = tuple(
        Branch(spec, want.pipeline.output) for spec, want in zip(whole.specs, wanted, strict=True)
    )
    outputs = tuple(branch.output for branch in branches)
    (source,) = first.pipeline.inputs
    others = [field for field in source.columns if field.name not in first.shipped]
    pipeline = replace(
        first.pipeline,
        inputs=(replace(source, columns=pa.schema([*_fields(wanted, whole), *others])),),
        make_kernels=partial(made, (*searched.before, partial(PatternMatches, branches))),
        output=branched_schema(outputs),
    )
    return PatternBundle(
        replace(first, pipeline=pipeline, shipped=as_columns(whole.values), searched=None), members, outputs
    )


def _fields(wanted: Sequence[StageRequest], whole: PatternGroup) -> Iterator[pa.Field]:
    """What is shipped for all, each column as one of the stages has it."""
    known: dict[tuple[str, str], pa.Field] = {}
    for want in wanted:
        assert want.searched is not None
        for name, (value, type_) in want.searched.search.values.items():
            known[value.sql, str(type_)] = want.pipeline.inputs[0].columns.field(name)
    for name, (value, type_) in whole.values.items():
        yield known[value.sql, str(type_)].with_name(name)
