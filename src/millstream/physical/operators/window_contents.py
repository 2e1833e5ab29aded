"""Contents of windows that are maintained: tuples with their lifetimes, or changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from millstream.analysis.queries.resolved_expression import ColumnRef, Expr, of_column
from millstream.kernels.column_names import OP
from millstream.kernels.kernel_specs import (
    KernelSpec,
    ReorderSpec,
    RetimeSpec,
    RowChangelogSpec,
    SampledChangelogSpec,
)
from millstream.kernels.relational.lifetimes import SlideInstants
from millstream.physical import expressions as ex
from millstream.physical.flow import Flow, FlowInput, named
from millstream.physical.node import Choice
from millstream.physical.operators.change_columns import SIGNED, VaryingRelation, beside_ticks
from millstream.physical.operators.lifetimes import bounds_of_day, lifetime_of, row_lifetime, slide_instants
from millstream.physical.operators.window import ALONG
from millstream.physical.stage_builder import StageBuilder, StageDraft
from millstream.plan import nodes
from millstream.plan.maintained_relations import mentioned, takes_tuples_as_they_come, tuples_of
from millstream.plan.relation_variance import maintained
from millstream.plan.time_attributes import attribute_beside_time
from millstream.types import BOOLEAN, Type, bound_type
from millstream.windows.window_properties import is_contextual, slides
from millstream.windows.window_spec import RowWindow, Window


@dataclass(frozen=True)
class WindowContents:
    """Plans the windows of one result that is maintained.

    Where windows of rows slide (``ticking``), their tuples decide when the result is evaluated, and windows
    that do not slide are sampled then.
    """

    stages: StageBuilder
    lower: Callable[[nodes.Node], Flow]
    periodic: tuple[SlideInstants, ...]
    """Instants at which windows of time slide."""

    ticking: tuple[nodes.Windowed, ...]
    mentioned: frozenset[ColumnRef]

    @staticmethod
    def of(stages: StageBuilder, lower: Callable[[nodes.Node], Flow], result: nodes.Node) -> WindowContents:
        windowed = [n for n in maintained(result) if isinstance(n, nodes.Windowed)]
        found = [slide_instants(side, stages.zone) for side in windowed]
        periodic = tuple(dict.fromkeys(one for one in found if one is not None))
        ticking = tuple(n for n in windowed if isinstance(n.window, RowWindow) and slides(n.window))
        return WindowContents(stages, lower, periodic, ticking, mentioned(result))

    @property
    def slides(self) -> tuple[SlideInstants, ...]:
        """Instants at which the result changes, if they are known before; none if tuples decide them too."""
        return () if self.ticking else self.periodic

    # ------------------------------------------------------------ windows

    def of_time(self, node: nodes.Node, windowed: nodes.Windowed) -> VaryingRelation:
        """A window of time, and what is computed from its tuples."""
        stay = lifetime_of(windowed, self.stages.zone)
        if takes_tuples_as_they_come(windowed):
            relation = VaryingRelation(self.lower(tuples_of(node)), node.schema, stay)
        else:
            relation = replace(self._placed(windowed), stay=stay)
        if not self.ticking or slides(windowed.window):
            return relation
        used = [c for c in relation.schema if c in self.mentioned or c not in windowed.schema]
        return self._sampled(replace(relation, schema=tuple(used)), windowed.window)

    def of_rows(self, node: nodes.Windowed) -> VaryingRelation:
        """A window of rows: who leaves is known when others come."""
        rows = self._rows(node, [c for c in node.input.schema if c in self.mentioned])
        return self._sampled(rows, node.window) if self.ticking and not slides(node.window) else rows

    def ticks(self) -> list[Flow]:
        """The instants at which windows of rows slide: those at which tuples enter them."""
        enters = Expr((f"`{OP}` > 0",), BOOLEAN)
        return [self._rows(n, ()).map(lambda one: one.where([enters])).flow for n in self.ticking]

    # ------------------------------------------------------------ stages

    def _placed(self, node: nodes.Windowed) -> VaryingRelation:
        """Tuples of a window with its attribute as their time, and between its times of day."""
        column = attribute_beside_time(node)
        flow = replace(self.lower(node), window=None)
        refs = tuple(c for c in node.input.schema if c in self.mentioned)
        draft = StageDraft(self.stages.shipped(flow, refs), marked=True)
        kernels: list[KernelSpec] = []
        if column is not None:
            flow = flow.map(lambda one: one.where([ex.has_place(Expr((column,), one.type_of(column)))]))
            if flow.first.axis is None:
                draft.arguments = {ALONG: of_column(column)}
                kernels = [ReorderSpec(), RetimeSpec(ALONG)]
                draft.time = flow.first.type_of(column)
        if is_contextual(node.window):
            kernels += [ReorderSpec(), bounds_of_day(node, self.stages.zone)]
        draft.kernels, draft.spread = kernels, not kernels
        made = named(self.stages.build(flow, draft), [(ref, f"c{i}") for i, ref in enumerate(refs)])
        return VaryingRelation(Flow((FlowInput(made, marked=True, staged=True),)), refs)

    def _rows(self, node: nodes.Windowed, refs: Sequence[ColumnRef]) -> VaryingRelation:
        assert isinstance(node.window, RowWindow)
        names = tuple(f"c{i}" for i in range(len(refs)))
        partition = {name.lower() for name in node.window.partition_by}
        flow = self.lower(node.input)
        draft = StageDraft(
            self.stages.shipped(flow, refs),
            keys=[of_column(c) for c in node.input.schema if c.name.lower() in partition],
            kernels=(ReorderSpec(), RowChangelogSpec(row_lifetime(node.window), names, self.slides)),
            notes=(Choice("rows", str(node.window), "a row leaves when others come"),),
        )
        return self._changes(flow, draft, refs)

    def _sampled(self, relation: VaryingRelation, window: Window) -> VaryingRelation:
        """The content of a window that does not slide, at the slides of windows of rows."""
        names = [f"c{i}" for i in range(len(relation.schema))]
        flow, shipped = beside_ticks(relation, self.ticks(), names)
        own = {name: shipped.pop(name) for name in names}
        kernel = SampledChangelogSpec(relation.stay, tuple(names), self.periodic)
        notes = (Choice("evaluated", "at slides of windows of rows", str(window)),)
        draft = StageDraft(own, shipped, kernels=(ReorderSpec(), kernel), notes=notes)
        return self._changes(flow, draft, relation.schema)

    def _changes(self, flow: Flow, draft: StageDraft, refs: Sequence[ColumnRef]) -> VaryingRelation:
        """Return the changes that a stage makes of rows with these columns."""
        draft.added, draft.marked, draft.anew, draft.time = SIGNED, True, True, stamp_type(flow)
        made = named(self.stages.build(flow, draft), [(ref, f"c{i}") for i, ref in enumerate(refs)])
        one = FlowInput(made, marked=True, staged=True, changes=True)
        return VaryingRelation(Flow((one,)), tuple(refs), None, signed=True)


def stamp_type(flow: Flow) -> Type:
    """Return the type of the instants at which rows of a flow enter and leave."""
    return bound_type(flow.first.time_type)
