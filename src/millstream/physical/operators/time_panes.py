"""User-defined aggregates over panes of time: what is shipped to them, and what windows make of panes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from millstream.analysis.queries.call_nodes import AggregateCall
from millstream.analysis.queries.resolved_expression import Expr
from millstream.codegen.udas.uda_compiler import CONTENT, PANE
from millstream.kernels.column_names import TUPLE
from millstream.kernels.core.arrow_types import arrow_type
from millstream.kernels.kernel_specs import KernelSpec, PaneUdasSpec, ReorderSpec
from millstream.kernels.result_types import rows_type
from millstream.kernels.specs import USER, AggregateSpec, TimePaneSpec, UdaSpec
from millstream.kernels.window_specs import AssignerSpec, SlidingWindows
from millstream.physical.operators.udas import condition_of, names_of, shipped_arguments
from millstream.physical.programs import Programs
from millstream.plan import nodes
from millstream.plan.time_panes import TimePanes, time_panes


@dataclass
class PanePlanner:
    """Plans the calls of a node whose windows are computed from panes; others are not its business."""

    programs: Programs
    node: nodes.WindowAggregate
    assigner: AssignerSpec
    specs: list[TimePaneSpec] = field(default_factory=list)

    def plan(
        self, call: AggregateCall, name: str, result: str
    ) -> tuple[dict[str, Expr], AggregateSpec] | None:
        """Return what a call is shipped, and the aggregate of the results of its panes."""
        panes = time_panes(self.node, call)
        if panes is None:
            return None
        program = self.programs.program(panes.pane, PANE)
        taking = panes.pane.returns if panes.combined is None else panes.combined.parameters
        first, *others = results = tuple(f"{name}_pane{i}" for i in range(len(taking)))
        is_pane = f"{name}_is_pane"
        user = UdaSpec(program, names_of(panes.pane, name), results, is_pane, condition_of(call, name))
        types = tuple(arrow_type(column.type) for column in taking)
        self.specs.append(TimePaneSpec(user, *self._grid(panes), types))
        over = program if panes.combined is None else self.programs.program(panes.combined, CONTENT)
        return shipped_arguments(call, panes.pane, name), AggregateSpec(
            USER,
            first,
            result,
            rows_type(over),
            others=tuple(others),
            parameters=(over,),
            condition=is_pane,
        )

    def _grid(self, panes: TimePanes) -> tuple[int, int, int, bool]:
        """Return the period of panes, their origin, the second pane of a period, and if the first counts."""
        windows = self.assigner
        assert isinstance(windows, SlidingWindows)
        range_, slide, origin = int(windows.range), int(windows.slide), int(windows.origin)
        if panes.combined is None:
            return slide, origin, slide - range_, False
        period = math.gcd(slide, int(windows.emit or 0))
        return period, origin, -range_ % period, True

    def kernels(self, keys: int, specs: Sequence[AggregateSpec]) -> tuple[KernelSpec, ...]:
        """Return the kernels before windows; tuples are kept if some aggregate needs them."""
        group_by = tuple(f"g{i}" for i in range(keys))
        return ReorderSpec(), PaneUdasSpec(tuple(self.specs), group_by, len(specs) > len(self.specs))

    def beside(self, specs: Iterable[AggregateSpec]) -> list[AggregateSpec]:
        """Return aggregates that are told results of panes from tuples."""
        own = {spec.user.whole for spec in self.specs}
        return [spec if spec.condition in own else _of_tuples(spec) for spec in specs]


def _of_tuples(spec: AggregateSpec) -> AggregateSpec:
    """Let an aggregate see tuples only: it skips NULLs, or has a condition."""
    if spec.argument is None:
        return replace(spec, argument=TUPLE)
    return spec if spec.condition is not None else replace(spec, condition=TUPLE)
