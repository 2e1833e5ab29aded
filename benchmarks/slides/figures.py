"""Measurements and the two figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")  # no screen is needed

import matplotlib.pyplot as plt

WINDOW = 40_000
SLIDES = (1, 10, 100, 1_000, 4_000, 10_000, 20_000, 40_000)

_STYLES = {"panes": ("#084594", "o-"), "tuples": ("#9ecae1", "s--"), "end to end": ("#252525", "^-")}


@dataclass(frozen=True)
class Point:
    """A slide, done in some way: tuples per second, rows of state at the end and their bytes."""

    way: str
    slide: int
    rate: float
    rows: int
    size: int


def draw(points: Sequence[Point], path: Path) -> Path:
    figure, (memory, rate) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
    for way in dict.fromkeys(point.way for point in points):
        mine = [point for point in points if point.way == way]
        slides = [point.slide for point in mine]
        colour, style = _STYLES[way]
        memory.plot(slides, [point.rows for point in mine], style, color=colour, label=way)
        rate.plot(slides, [point.rate for point in mine], style, color=colour, label=way)
    memory.set_title("rows of state (figure 6 of the ESL paper)", loc="left", fontsize=10)
    rate.set_title("tuples/s (figure 7)", loc="left", fontsize=10)
    for panel in (memory, rate):
        panel.set_xscale("log")
        panel.set_yscale("log")
        panel.set_xlabel(f"SLIDE, of a window of {WINDOW:,} tuples", fontsize=8)
        panel.spines[["top", "right"]].set_visible(False)
        panel.legend(fontsize=8, frameon=False)
    figure.savefig(path, dpi=120)
    plt.close(figure)
    return path
