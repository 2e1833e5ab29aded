"""Pictures with lines: panels side by side, each with some curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")  # no screen is needed

import matplotlib.pyplot as plt

_STYLES = (
    ("#084594", "o-"), ("#d94801", "s--"), ("#525252", "^:"), ("#238b45", "D-"),
    ("#6a51a3", "v--"), ("#4292c6", "P-"), ("#cb181d", "X:"), ("#969696", "*-"),
)  # fmt: skip


@dataclass(frozen=True)
class Panel:
    """Curves by name, each a list of points."""

    title: str
    x: str
    y: str
    curves: Mapping[str, Sequence[tuple[float, float]]]
    log_x: bool = False
    log_y: bool = False


def draw(panels: Sequence[Panel], path: Path) -> str:
    """Draw into the file, and tell its name."""
    figure, axes = plt.subplots(
        1, len(panels), figsize=(5.5 * len(panels), 4), squeeze=False, layout="constrained"
    )
    for axis, panel in zip(axes[0], panels, strict=True):
        for number, (name, points) in enumerate(panel.curves.items()):
            colour, style = _STYLES[number % len(_STYLES)]
            axis.plot(*zip(*points, strict=True), style, color=colour, label=name, markersize=4)
        axis.set_title(panel.title, loc="left", fontsize=10)
        axis.set_xlabel(panel.x, fontsize=8)
        axis.set_ylabel(panel.y, fontsize=8)
        if panel.log_x:
            axis.set_xscale("log")
        if panel.log_y:
            axis.set_yscale("log")
        else:
            axis.set_ylim(bottom=min(0, axis.get_ylim()[0]))
        axis.spines[["top", "right"]].set_visible(False)
        axis.legend(fontsize=8, frameon=False)
    figure.savefig(path, dpi=120)
    plt.close(figure)
    return path.name
