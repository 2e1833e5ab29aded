"""Costs against a varied parameter: tables, pictures and growth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.experiments.lines import Panel
from benchmarks.experiments.section import Claim, Figures
from benchmarks.relations.waves import Cost

Costs = Mapping[str, Mapping[int, Cost]]
"""Costs by operator and by the varied parameter."""

LINEAR = 1.25
"""What grows by at most so many times more than the size does is said to be linear."""


def table(title: str, what: str, costs: Costs) -> Figures:
    """Milliseconds of operators, and in the last line those of the windows before them, on average."""
    points = list(next(iter(costs.values())))
    rows = [[what, *(f"{point:,}" for point in points)]]
    for name, of_operator in costs.items():
        rows.append([name, *(_milliseconds(of_operator[point].operator) for point in points)])
    windows = [sum(of[point].window for of in costs.values()) / len(costs) for point in points]
    rows.append(["the window itself", *map(_milliseconds, windows)])
    return Figures(title, rows)


def panel(title: str, x: str, y: str, costs: Costs) -> Panel:
    curves = {name: [(p, cost.operator * 1000) for p, cost in of.items()] for name, of in costs.items()}
    return Panel(title, x, y, curves, log_y=True)


def growth(costs: Mapping[int, Cost]) -> tuple[float, float]:
    """From the first point to the last: how many times as much there is, and how many times the cost."""
    first, *_, last = costs
    return last / first, costs[last].operator / costs[first].operator


def linear(text: str, costs: Costs) -> Claim:
    """Return whether no operator grows more than the varied parameter."""
    grown = {name: growth(of_operator) for name, of_operator in costs.items()}
    said = ", ".join(f"{name} {times:.1f}" for name, (_, times) in grown.items())
    size = next(iter(grown.values()))[0]
    holds = all(times <= LINEAR * size for _, times in grown.values())
    return Claim(
        text, f"from the first to the last, {size:.0f} times as large, the cost is: {said} times", holds
    )


def dearest(text: str, costs: Costs, wanted: str) -> Claim:
    """Return whether an operator costs most, at the last point."""
    last = {name: list(of_operator.values())[-1].operator for name, of_operator in costs.items()}
    return Claim(text, listed(last), max(last, key=lambda name: last[name]) == wanted)


def listed(seconds: Mapping[str, float]) -> str:
    order: Sequence[str] = sorted(seconds, key=lambda name: -seconds[name])
    return ", ".join(f"{name} {_milliseconds(seconds[name])} ms" for name in order)


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:,.1f}" if seconds < 0.1 else f"{seconds * 1000:,.0f}"
