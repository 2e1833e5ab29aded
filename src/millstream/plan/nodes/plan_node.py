"""The base class of logical plan nodes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Self

from millstream.analysis.queries.resolved_expression import ColumnRef, Expr

Schema = tuple[ColumnRef, ...]


class PlanError(Exception):
    """An invalid node: a mistake of the planner, never of the user."""


@dataclass(frozen=True)
class Node(ABC):
    """An operator. Its inputs are the fields that are nodes."""

    def __post_init__(self) -> None:
        self.validate()

    def validate(self) -> None:  # noqa: B027 (most nodes have nothing to check)
        """Raise PlanError for an invalid node."""

    @property
    @abstractmethod
    def schema(self) -> Schema:
        """The columns of the output."""

    @abstractmethod
    def label(self) -> str:
        """Return the node as a line of EXPLAIN."""

    @cached_property
    def streaming(self) -> bool:
        """Return whether the output is a stream."""
        return any(node.streaming for node in self.inputs)

    @cached_property
    def has_open_schema(self) -> bool:
        """Return whether some columns are known only to Spark."""
        return any(node.has_open_schema for node in self.inputs)

    @cached_property
    def inputs(self) -> tuple[Node, ...]:
        return tuple(value for f in fields(self) if isinstance(value := getattr(self, f.name), Node))

    def map_inputs(self, change: Callable[[Node], Node]) -> Self:
        """Return this node over changed inputs; the node itself if none changed."""
        changed = {
            f.name: new
            for f in fields(self)
            if isinstance(old := getattr(self, f.name), Node) and (new := change(old)) is not old
        }
        return replace(self, **changed) if changed else self

    def walk(self) -> Iterator[Node]:
        """Yield this node and all below it, each before its inputs, without recursion: plans may be deep."""
        pending: list[Node] = [self]
        while pending:
            node = pending.pop()
            yield node
            pending += reversed(node.inputs)

    def require(self, *expressions: Expr) -> None:
        """Check that the inputs have all columns of these expressions."""
        available = {(c.relation.lower(), c.name.lower()) for node in self.inputs for c in node.schema}
        for expr in expressions:
            for column in expr.columns():
                if (column.relation.lower(), column.name.lower()) not in available:
                    raise PlanError(f"{type(self).__name__} has no column {column} for '{expr}'")
