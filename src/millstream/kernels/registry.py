"""Registry of kernels: the class that runs each specification.

Classes are imported when they are needed: a shard loads the compiled code of its own kernels only.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from importlib import import_module

from millstream.kernels import kernel_specs, specs
from millstream.kernels.core.kernel import Kernel
from millstream.kernels.kernel_specs import KernelSpec

_BY_FIELDS: dict[type, str] = {
    kernel_specs.ReorderSpec: "core.reorder.Reorder",
    kernel_specs.TieOrderSpec: "core.tie_order.TieOrder",
    kernel_specs.StreamLimitSpec: "core.stream_limit.StreamLimit",
    kernel_specs.RetimeSpec: "windows.retime.Retimed",
    kernel_specs.ArrivalNumbersSpec: "windows.arrival_numbers.ArrivalNumbers",
    kernel_specs.OverAggregatesSpec: "over.over_aggregate.OverAggregate",
    kernel_specs.OverUdasSpec: "udas.over_uda.OverUda",
    kernel_specs.ActiveAggregateSpec: "over.active_expiration.ActiveAggregate",
    kernel_specs.ActiveUdaSpec: "udas.active_uda.ActiveUda",
    kernel_specs.PaneUdasSpec: "udas.time_panes.TimePanes",
    kernel_specs.StreamUdasSpec: "udas.stream_uda.BaseAggregate",
    kernel_specs.StreamUnionSpec: "relational.stream_union.StreamUnion",
    kernel_specs.PatternGroupSpec: "patterns.pattern_match.PatternMatches",
    kernel_specs.ChangelogSpec: "relational.changelog.Changelog",
    kernel_specs.RowChangelogSpec: "relational.changelog.RowChangelog",
    kernel_specs.SampledChangelogSpec: "relational.sampled_changelog.SampledChangelog",
    kernel_specs.BoundsOfDaySpec: "relational.bounds_of_day.BoundsOfDay",
    kernel_specs.ScalarRowSpec: "relational.scalar_row.ScalarRow",
    kernel_specs.BegunChangelogSpec: "relational.begun_changelog.BegunChangelog",
    kernel_specs.RStreamSpec: "relational.rstream.RStream",
    kernel_specs.SetOperationsSpec: "relational.distinct_and_set_operations.SetOperation",
    kernel_specs.GroupsSpec: "relational.group_aggregate.GroupAggregate",
    kernel_specs.AppendOnlyGroupsSpec: "relational.append_only_groups.AppendOnlyGroups",
}
"""Kernels that are made with the fields of their specification."""

_BY_SPEC: dict[type, str] = {
    specs.WindowSpec: "windows.window_aggregate.WindowAggregate",
    specs.WindowRankSpec: "windows.window_rank.WindowRank",
    specs.PatternSpec: "patterns.pattern_match.PatternMatch",
    specs.AppendOnlyJoinSpec: "relational.append_only_join.AppendOnlyJoin",
    specs.InnerJoinSpec: "relational.inner_join.InnerJoin",
    specs.OuterJoinSpec: "relational.outer_join.OuterJoin",
    specs.SemiAntiJoinSpec: "relational.semi_anti_join.SemiAntiJoin",
}
"""Kernels that are made with their specification."""


def make_kernel(spec: KernelSpec) -> Kernel:
    """Make the kernel of a specification.

    >>> type(make_kernel(kernel_specs.ReorderSpec())).__name__
    'Reorder'
    """
    module, _, name = kernel_name(spec).rpartition(".")
    class_ = getattr(import_module(f"{__package__}.{module}"), name)
    if type(spec) in _BY_SPEC:
        return class_(spec)  # type: ignore[no-any-return]
    return class_(**{field.name: getattr(spec, field.name) for field in fields(spec)})  # type: ignore[no-any-return]


def make_kernels(given: Iterable[KernelSpec]) -> list[Kernel]:
    """Make the kernels of a stage, in the order in which tuples pass them."""
    return [make_kernel(spec) for spec in given]


def kernel_name(spec: KernelSpec) -> str:
    """Return the module and the class that run a specification."""
    return _BY_SPEC.get(type(spec)) or _BY_FIELDS[type(spec)]
