"""Experiment 3 of the window-id paper: latency against accuracy where blocks come in no order."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.experiments.lines import Panel, draw
from benchmarks.experiments.section import Claim, Figures, Section, Size
from benchmarks.windows.disorder import BLOCK, SECOND, blocks
from benchmarks.windows.releasing import HEADING, Quality, Trial, curves, line

ROWS, REPEATS = 1_000_000, 1
RANGE, SLIDE = 600 * SECOND, 60 * SECOND
SLACKS = [seconds * SECOND for seconds in (0, 60, 120, 180, 240, 300, 360, 420, 460, 480, 488, 489, 490, 491,
                                           492, 500, 520, 540, 570, 600)]  # fmt: skip
ABOUT = """\
`count(*)` over `[RANGE 600 SECONDS SLIDE 60 SECONDS]` of a stream whose blocks of 490 s come in random
order, 50 tuples a second (section 8.2, figure 10; slack from 0 to 600 s). A block is sent while the next
is recorded, so nothing is known of a window before its last block has begun to arrive. Punctuation from
outside comes at the end of each block. The paper does not define its latency. What it says holds of the
time that results wait although all of their tuples have arrived: that is nothing below the optimum, and
grows above it. The time since the window's end, which is shown too, grows with the slack throughout."""


def measure(size: Size, directory: Path) -> Section:
    stream = blocks(size.rows)
    trial = Trial(stream, RANGE, SLIDE, margin=max(SLACKS[-1], BLOCK))
    number = stream.ts // BLOCK
    last = np.flatnonzero(np.diff(number, append=number[-1] + 1))
    found = [trial.punctuated(((number[last] + 1) * BLOCK).tolist(), stream.arrival[last].tolist())]
    for generous in (False, True):
        found += [trial.slack(slack, generous=generous) for slack in SLACKS]
    panels = [
        Panel(
            "figure 10: wrong answers",
            "waiting, s after the window's last tuple",
            "wrong windows, %",
            curves(found, lambda quality: (quality.waiting, 100 * quality.wrong)),
        ),
        Panel(
            "the same, by latency",
            "latency, s after the window's end",
            "wrong windows, %",
            curves(found, lambda quality: (quality.latency, 100 * quality.wrong)),
        ),
        Panel(
            "what slack does",
            "slack, s",
            "waiting, s",
            curves(found, lambda quality: (quality.slack or 0, quality.waiting), with_outside=False),
        ),
    ]
    title = "Experiment 3 of the window-id paper: latency and accuracy, block-sorted disorder"
    tables = [Figures("", [HEADING, *map(line, found)])]
    return Section(title, ABOUT, _claims(found), tables, [draw(panels, directory / "blocks.png")])


def _claims(found: Sequence[Quality]) -> list[Claim]:
    outside, *rest = found
    consistent = rest[: len(SLACKS)]
    right = [quality for quality in consistent if quality.wrong == 0]
    best = min(right, key=lambda quality: (quality.waiting, quality.slack or 0))
    below = [quality.waiting for quality in consistent if (quality.slack or 0) < (best.slack or 0)]
    most = consistent[-1]
    early = [quality for quality in rest if quality.latency < outside.latency]
    return [
        Claim(
            "one slack has the best latency at the optimal accuracy; in the paper 491 s",
            f"{best.slack:g} s: no wrong window, waiting {best.waiting:.2f} s",
            abs((best.slack or 0) - 491) <= 1,
        ),
        Claim(
            "below it latency is essentially independent of slack",
            f"waiting {min(below):.2f} to {max(below):.2f} s",
            max(below) - min(below) < 1,
        ),
        Claim(
            "above it latency jumps dramatically",
            f"waiting {most.waiting:.1f} s at {most.slack:g} s",
            most.waiting > 10 * max(best.waiting, 1),
        ),
        Claim(
            "external punctuation has better latency and accuracy than any slack",
            f"no wrong window, waiting {outside.waiting:.2f} s, latency {outside.latency:.1f} s; slack with "
            f"a shorter latency has {min((q.wrong for q in early), default=0):.0%} wrong windows or more",
            outside.wrong == 0
            and all(quality.wrong > 0 for quality in early)
            and outside.waiting <= best.waiting,
        ),
    ]
