"""Several patterns over one stream: each in a kernel of its own, and all in one kernel."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.experiments.section import Claim, Figures, Section, Size
from benchmarks.patterns import streams
from benchmarks.patterns.examples import CLICKS, QUOTES, RELAXED, double_bottom
from benchmarks.patterns.kernels import form_of, spec_of
from benchmarks.patterns.search import batches_of
from benchmarks.windows.chains import AT_ONCE
from millstream.codegen.patterns.pattern_compiler import compile_pattern
from millstream.kernels.column_names import BRANCH
from millstream.kernels.core.arrow_types import arrow_type
from millstream.kernels.core.kernel import Frontier, Kernel, Tuples
from millstream.kernels.kernel_specs import PatternBranch
from millstream.kernels.patterns.pattern_match import PatternMatch, PatternMatches
from millstream.kernels.result_types import returned_fields
from millstream.kernels.specs import PatternSpec

ROWS, REPEATS = 2_000_000, 7
ALONE, TOGETHER = "by itself", "together"
WAYS = (ALONE, TOGETHER)
COUNTS = (4, 8)


def _prices(elements: str, where: str) -> str:
    return f"{QUOTES} SELECT X.date, X.price FROM quote PARTITION BY name AS ({elements}) WHERE {where};"


def _clicks(elements: str, where: str) -> str:
    return f"{CLICKS} SELECT X.ClickTime FROM Sessions PARTITION BY SessNo AS ({elements}) WHERE {where};"


PATTERNS = {
    "prices": (
        "name",
        (
            double_bottom(falls="<", rises=">"),
            _prices("X, *Y, Z", "Y.price < Y.previous.price AND Z.price > 1.03 * Z.previous.price"),
            _prices(
                "X, *Y, *Z",
                "X.price >= X.previous.price AND Y.price < Y.previous.price AND Z.price > Z.previous.price "
                "AND count(*Y) >= 3",
            ),
            _prices(
                "*X, Y",
                "X.price > X.previous.price AND Y.price < 0.98 * Y.previous.price AND count(*X) >= 4",
            ),
            double_bottom(3, falls="<", rises=">"),
            _prices(
                "X, Y, Z",
                "X.price > 1.02 * X.previous.price AND Y.price > Y.previous.price "
                "AND Z.price > 1.03 * Z.previous.price",
            ),
            _prices(
                "X, *Y",
                "X.price < 0.98 * X.previous.price AND Y.price <= Y.previous.price AND count(*Y) >= 3",
            ),
            RELAXED,
        ),
    ),
    "clicks": (
        "SessNo",
        (
            _clicks("X, Y, Z", "X.PageType = 'a' AND Y.PageType = 'd' AND Z.PageType = 'p'"),
            _clicks("*X, Y", "X.PageType <> 'd' AND Y.PageType = 'd' AND count(*X) < 20"),
            _clicks(
                "X, *Y, Z",
                "X.PageType = 'a' AND X.PageNo > 50 AND Y.PageType = 'c' AND Z.PageType = 'p'",
            ),
            _clicks("X, Y", "X.PageType = 'd' AND Y.PageType = 'd' AND Y.PageNo > 50"),
            _clicks("*X, Y", "X.PageType = 'c' AND Y.PageType = 'p' AND Y.PageNo > 90 AND count(*X) > 2"),
            _clicks("X, *Y", "X.PageType = 'a' AND Y.PageType <> 'a' AND count(*Y) > 5"),
            _clicks("X, Y, Z", "X.PageType = 'p' AND Y.PageType = 'p' AND Z.PageType = 'a'"),
            _clicks("X, *Y, Z", "X.PageNo > 50 AND Y.PageNo > 60 AND Z.PageNo <= 50"),
        ),
    ),
}
"""The key and the patterns of each stream."""

ABOUT = f"""\
Patterns over one stream, {streams.PARTITIONS} partitions, batches of {AT_ONCE:,}, in the kernels alone. A
stage packs, ships and orders tuples once in any case, and these figures leave that out. *{ALONE}*: a kernel
for each pattern, which numbers the partitions and encodes the columns for itself. *{TOGETHER}*: one kernel
does that once for all patterns. The ways run in turn, and the fastest run counts, in processor time. Both
have the same matches, which is checked."""


@dataclass(frozen=True)
class Measured:
    """Nanoseconds per tuple by way, and the number of matches."""

    matches: int
    times: dict[str, float]


def measure(size: Size, directory: Path) -> Section:
    measured = {}
    for stream, (key, scripts) in PATTERNS.items():
        table = streams.STREAMS[stream](size.rows)
        for count in COUNTS:
            measured[stream, count] = _measured(table, key, scripts[:count], size.repeats)
    rows = [["for a tuple", "patterns", "matches"]]
    rows[0] += [f"ns, {way}" for way in WAYS]
    for (stream, count), one in measured.items():
        figures = [f"{one.times[way]:,.0f}" for way in WAYS]
        rows.append([stream, str(count), f"{one.matches:,}", *figures])
    title = "Several patterns in one kernel"
    return Section(title, ABOUT, _claims(list(measured.values())), [Figures("", rows)])


def _measured(table: pa.Table, key: str, scripts: Sequence[str], repeats: int) -> Measured:
    forms = [form_of(script) for script in scripts]
    table = table.cast(pa.schema([(field.name, arrow_type(field.type)) for field in forms[0].fields]))
    batches = batches_of(table, np.asarray(table[key]).astype(np.int64))
    specs = [spec_of(compile_pattern(form)) for form in forms]
    ways: dict[str, Callable[[], list[Kernel]]] = {
        ALONE: lambda: [PatternMatch(spec) for spec in specs],
        TOGETHER: lambda: [_together(specs)],
    }
    for make in ways.values():
        _found(make(), batches[-1:])  # compile before the clock starts
    seconds: dict[str, list[float]] = {way: [] for way in WAYS}
    found = []
    for _ in range(repeats):
        for way, make in ways.items():
            kernels = make()
            begun = time.process_time()
            matches = _found(kernels, batches)
            seconds[way].append(time.process_time() - begun)
            found.append(matches)
    if not all(np.array_equal(found[0], matches) for matches in found):
        raise AssertionError(f"not all ways find the same matches: {[len(m) for m in found]}")
    times = {way: min(of_way) / len(table) * 1e9 for way, of_way in seconds.items()}
    return Measured(len(found[0]), times)


def _together(specs: Sequence[PatternSpec]) -> PatternMatches:
    outputs = [pa.schema(returned_fields(spec.program, spec.results)) for spec in specs]
    return PatternMatches(tuple(PatternBranch(spec, out) for spec, out in zip(specs, outputs, strict=True)))


def _found(kernels: Sequence[Kernel], batches: Sequence[tuple[Tuples, Frontier]]) -> np.ndarray:
    """Pattern and last tuple of each match, in order."""
    found = []
    for number, kernel in enumerate(kernels):
        for tuples, frontier in batches:
            out = kernel.process(tuples, frontier)
            is_branched = BRANCH in out.columns.column_names
            branch = np.asarray(out.columns[BRANCH]) if is_branched else np.full(len(out), number)
            found.append(np.stack([branch.astype(np.int64), out.number]))
    both = np.concatenate(found, axis=1)
    return both[:, np.lexsort(both[::-1])].T


def _claims(cases: Sequence[Measured]) -> list[Claim]:
    ratios = [one.times[ALONE] / one.times[TOGETHER] for one in cases]
    return [
        Claim(
            "patterns together cost less than by themselves",
            f"from {min(ratios):.2f} to {max(ratios):.2f} times less",
            all(ratio > 1 for ratio in ratios),
        ),
    ]
