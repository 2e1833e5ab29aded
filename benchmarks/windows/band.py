"""Experiment 2 of the window-id paper: latency against accuracy where disorder is bounded."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.experiments.lines import Panel, draw
from benchmarks.experiments.section import Claim, Figures, Section, Size
from benchmarks.windows.disorder import BAND, SECOND, Disordered, band
from benchmarks.windows.releasing import HEADING, Quality, Trial, curves, line

ROWS, REPEATS = 500_000, 1
RANGE = 64 * SECOND
SLIDES = (6_400_000, 64 * SECOND)
SLACKS = [step * 320_000 for step in range(1, 11)]
ABOUT = f"""\
`avg(v)` over `[RANGE 64 SECONDS SLIDE s]`, with s 6.4 seconds as in table 1 and 64 seconds as in the
text of section 8.2, which differ. Tuples are 10 ms apart and delayed by up to {BAND / 1e6:g} s. Slack
goes from 0.32 to 3.2 s, as there. Punctuation from outside comes for each window's end, as soon as the
last tuple before it has arrived. Latency is the time between a window's end and its result, waiting the
time between the arrival of its last tuple and its result, both in stream time. The paper does not say
what its disorder was in figures, so curves have the shape of figure 9 and not its values. In the paper a
late tuple of a consistent stream is dropped if one of its windows is closed; here if it is older than
what has been promised, whether or not a window ends in between. That makes the difference between the
two kinds of slack larger the longer the slide is."""


def measure(size: Size, directory: Path) -> Section:
    stream = band(size.rows)
    qualities = {slide: _sweep(stream, slide) for slide in SLIDES}
    tables = [
        Figures(f"SLIDE {slide / 1e6:g} s", [HEADING, *map(line, found)])
        for slide, found in qualities.items()
    ]
    panels = [
        Panel(
            f"figure 9, SLIDE {slide / 1e6:g} s: error of avg",
            "latency, s after the window's end",
            "mean error, %",
            curves(found, lambda quality: (quality.latency, 100 * quality.error_of_mean)),
        )
        for slide, found in qualities.items()
    ]
    panels.append(
        Panel(
            "share of tuples not counted, SLIDE 6.4 s",
            "slack, s",
            "%",
            curves(qualities[SLIDES[0]], lambda q: (q.slack or 0, 100 - 100 * q.counted), with_outside=False),
        )
    )
    claims = [claim for slide, found in qualities.items() for claim in _claims(slide, found)]
    title = "Experiment 2 of the window-id paper: latency and accuracy, bounded disorder"
    return Section(title, ABOUT, claims, tables, [draw(panels, directory / "band.png")])


def _sweep(stream: Disordered, slide: int) -> list[Quality]:
    trial = Trial(stream, RANGE, slide, margin=SLACKS[-1])
    by_time = np.argsort(stream.ts, kind="stable")
    so_far = np.maximum.accumulate(stream.arrival[by_time])
    ends = np.arange(slide, int(stream.ts.max()), slide)
    instants = np.maximum(ends, so_far[np.searchsorted(stream.ts[by_time], ends) - 1])
    found = [trial.punctuated(ends.tolist(), instants.tolist())]
    for generous in (False, True):
        found += [trial.slack(slack, generous=generous) for slack in SLACKS]
    return found


def _claims(slide: int, found: Sequence[Quality]) -> list[Claim]:
    outside, *rest = found
    consistent, generous = rest[: len(SLACKS)], rest[len(SLACKS) :]
    first, last = consistent[0], consistent[-1]
    when = f"SLIDE {slide / 1e6:g} s"
    no_later = [quality for quality in rest if quality.latency < outside.latency]
    best = min((quality.error_of_mean for quality in no_later), default=None)
    quicker = (
        "none of them"
        if best is None
        else f"{len(no_later)} of {len(rest)}, with an error of {best:.1e} or more"
    )
    return [
        Claim(
            f"with more slack error falls and latency rises ({when})",
            f"consistent: error {first.error_of_mean:.1e} to {last.error_of_mean:.1e}, "
            f"latency {first.latency:.2f} to {last.latency:.2f} s",
            first.error_of_mean > last.error_of_mean and first.latency < last.latency,
        ),
        Claim(
            f"external punctuation has better latency and accuracy than either slack ({when})",
            f"no error at {outside.latency:.2f} s; slack is earlier in {quicker}",
            outside.wrong == 0 and (best is None or best > 0),
        ),
        Claim(
            f"generous slack is much more accurate than consistent slack at the same latency ({when})",
            f"tuples missed at {first.slack:g} s of slack: {1 - generous[0].counted:.2%} "
            f"and not {1 - first.counted:.2%}",
            all(g.counted >= c.counted for g, c in zip(generous, consistent, strict=True))
            and generous[0].counted > first.counted,
        ),
    ]
