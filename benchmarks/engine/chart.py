"""The picture of the report: a panel for each query, a bar for each contestant and number of keys."""

from __future__ import annotations

import math
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes

from benchmarks.engine.contract import QUERIES
from benchmarks.engine.results import Results, described

mpl.use("Agg")  # no screen is needed

import matplotlib.pyplot as plt

COLOURS = ("#9ecae1", "#4292c6", "#084594", "#252525")


def draw(results: Results, path: Path) -> Path:
    queries = results.queries()
    bars = [len(results.contestants(query)) * len(results.keys(query)) for query in queries]
    figure, panels = plt.subplots(
        len(queries),
        1,
        figsize=(10, 1.2 * len(queries) + 0.3 * sum(bars)),
        height_ratios=[count + 1 for count in bars],
        squeeze=False,
        layout="constrained",
    )
    limits = _limits(results)
    for panel, query in zip(panels[:, 0], queries, strict=True):
        is_duration = query.startswith("micro_batch")
        _panel(panel, results, query, shortest=0 if is_duration else limits[0])
        if not is_duration:
            # In this order: there may be no bar at all, and then nothing to scale by.
            panel.set_xlim(limits)
            panel.set_xscale("log")
    figure.savefig(path, dpi=120)
    plt.close(figure)
    return path


def _panel(panel: Axes, results: Results, query: str, shortest: float) -> None:
    """Draw rows per second or, for micro-batches, milliseconds; a missing figure has its reason."""
    contestants, keys = results.contestants(query), results.keys(query)
    is_duration = query.startswith("micro_batch")
    height = 0.8 / len(keys)
    for place, number in enumerate(keys):
        positions = [row + place * height for row in range(len(contestants))]
        rates = [results.rate(contestant, number) for contestant in contestants]
        lengths = [(1000 / rate if is_duration else rate) if rate else shortest for rate in rates]
        colour = COLOURS[place % len(COLOURS)]
        drawn = panel.barh(positions, lengths, height * 0.95, color=colour, label=described(number))
        panel.bar_label(drawn, [results.cell(c, number) for c in contestants], padding=3, fontsize=8)
    middles = [row + 0.4 - height / 2 for row in range(len(contestants))]
    panel.set_yticks(middles, [contestant.name for contestant in contestants])
    panel.invert_yaxis()
    panel.margins(x=0.2)
    panel.set_title(QUERIES[query], loc="left", fontsize=10)
    panel.set_xlabel("ms" if is_duration else "rows/s, logarithmic", fontsize=8)
    panel.spines[["top", "right"]].set_visible(False)
    if len(keys) > 1:
        panel.legend(fontsize=8, frameon=False, loc="upper left", bbox_to_anchor=(1, 1))


def _limits(results: Results) -> tuple[float, float]:
    """Return common limits for all panels with rows per second, so that bars can be compared across them."""
    measured = [run for run in results.outcomes if not run.contestant.is_micro_batch]
    rates = [rate for run in measured if (rate := results.rate(run.contestant, run.keys))]
    if not rates:
        return 1, 10
    return 10 ** math.floor(math.log10(min(rates) * 0.9)), max(rates) * 4
