"""The rule driver: named stages of rules, each applied until nothing changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from millstream.plan.nodes import Node
from millstream.plan.rules.first_rows_of_partitions import first_rows_of_partitions
from millstream.plan.rules.merge_filters import merge_filters
from millstream.plan.rules.merge_projects import merge_projects
from millstream.plan.rules.order_window_joins import order_window_joins
from millstream.plan.rules.push_condition_to_join_side import push_condition_to_join_side
from millstream.plan.rules.push_filter_below_project import push_filter_below_project
from millstream.plan.rules.push_filter_below_rename import push_filter_below_rename
from millstream.plan.rules.push_filter_below_window import push_filter_below_window
from millstream.plan.rules.push_filter_into_join import push_filter_into_join
from millstream.plan.rules.push_filter_into_window_join import push_filter_into_window_join
from millstream.plan.rules.union_of_windows import union_of_windows

Rule = Callable[[Node], Node]

_MOST_ROUNDS = 100
"""Limit on rounds, far above any plan's need: rules that undo each other must not hang the planner."""


@dataclass(frozen=True)
class Stage:
    """Rules with a common purpose."""

    name: str
    rules: tuple[Rule, ...]


STAGES = (
    Stage(
        "filters towards the source",
        (
            push_filter_below_project,
            push_filter_below_rename,
            push_filter_into_join,
            push_filter_into_window_join,
            push_condition_to_join_side,
            push_filter_below_window,
            merge_filters,
        ),
    ),
    Stage("small windows first", (order_window_joins,)),
    Stage("fewer windows", (union_of_windows,)),
    Stage("fewer projections", (merge_projects,)),
    Stage("first rows of partitions", (first_rows_of_partitions,)),
)


@dataclass(frozen=True)
class Step:
    """A round of a stage that changed a plan, with the names of the rules."""

    stage: str
    rules: tuple[str, ...]
    plan: Node


def optimize(plan: Node, stages: Iterable[Stage] = STAGES) -> Node:
    """Return an equivalent plan after all stages."""
    for step in trace(plan, stages):
        plan = step.plan
    return plan


def trace(plan: Node, stages: Iterable[Stage] = STAGES) -> Iterator[Step]:
    """Yield every round that changes the plan, in order."""
    for stage in stages:
        for _ in range(_MOST_ROUNDS):
            fired: dict[str, None] = {}
            plan = _everywhere(stage.rules, plan, fired)
            if not fired:
                break
            yield Step(stage.name, tuple(fired), plan)


def _everywhere(rules: Sequence[Rule], node: Node, fired: dict[str, None]) -> Node:
    """Apply rules to a node and then to its inputs, so that a filter sinks to its place in one round."""
    changed = _settled(rules, node, fired)
    return changed.map_inputs(lambda child: _everywhere(rules, child, fired))


def _settled(rules: Sequence[Rule], node: Node, fired: dict[str, None]) -> Node:
    """Apply the rules to a node until none changes it."""
    for _ in range(_MOST_ROUNDS):
        before = node
        for rule in rules:
            after = rule(node)
            if after is not node and after != node:
                fired[rule.__name__] = None
                node = after
        if node is before:
            break
    return node
