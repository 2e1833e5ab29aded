"""Several patterns in one stream: each by itself, and with partitions, columns and answers in common."""

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
from millstream.codegen.patterns.pattern_compiler import compile_pattern, compile_shared_pattern
from millstream.codegen.patterns.shared_conditions import shared_conditions
from millstream.ir.pattern import Pattern
from millstream.kernels.core.arrow_types import arrow_type
from millstream.kernels.core.kernel import Frontier, Kernel, Tuples
from millstream.kernels.patterns.pattern_match import PatternMatch, PatternMatches
from millstream.kernels.patterns.tagged_rows import BRANCH, Branch
from millstream.kernels.specs import PatternSpec
from millstream.kernels.udas.compiled_machine import returned_fields

ROWS, REPEATS = 2_000_000, 7
ALONE, CODED, SHARED = "by itself", "partitions and columns", "answers too"
WAYS = (ALONE, CODED, SHARED)
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
"""The key, and patterns of which some ask the same, and some what follows from what others ask."""

ABOUT = f"""\
Patterns over one stream, {streams.PARTITIONS} partitions, batches of {AT_ONCE:,}, in the kernels alone: to
pack, ship and order tuples, which a stage does once in any case, is not in these figures. *{ALONE}*: a kernel
for each pattern, which numbers the partitions and encodes the columns for itself. *{CODED}*: that
is done once for all. *{SHARED}*: what one search has found out about a tuple need not be asked in the
next, if it is the same or follows. The ways are run in turn; of all runs the fastest counts, in time of the
processor. Each way finds the same matches, which is checked."""


@dataclass(frozen=True)
class Measured:
    """Of each way: questions and nanoseconds for a tuple."""

    patterns: int
    matches: int
    questions: dict[str, float]
    times: dict[str, float]


def measure(size: Size, directory: Path) -> Section:
    measured = {}
    for stream, (key, scripts) in PATTERNS.items():
        table = streams.STREAMS[stream](size.rows)
        for count in COUNTS:
            measured[stream, count] = _measured(table, key, scripts[:count], size.repeats)
    rows = [["for a tuple", "patterns", "matches"]]
    rows[0] += [f"asked, {way}" for way in WAYS[1:]] + [f"ns, {way}" for way in WAYS]
    for (stream, count), one in measured.items():
        figures = [f"{one.questions[way]:.2f}" for way in WAYS[1:]]
        figures += [f"{one.times[way]:,.0f}" for way in WAYS]
        rows.append([stream, str(count), f"{one.matches:,}", *figures])
    title = "Several patterns: what they have in common"
    return Section(title, ABOUT, _claims(list(measured.values())), [Figures("", rows)])


def _measured(table: pa.Table, key: str, scripts: Sequence[str], repeats: int) -> Measured:
    forms = [form_of(script) for script in scripts]
    table = table.cast(pa.schema([(field.name, arrow_type(field.type)) for field in forms[0].fields]))
    batches = batches_of(table, np.asarray(table[key]).astype(np.int64))
    alone, shared = [spec_of(compile_pattern(form)) for form in forms], _sharing(forms)
    ways: dict[str, Callable[[], list[Kernel]]] = {
        ALONE: lambda: [PatternMatch(spec) for spec in alone],
        CODED: lambda: [_together(alone)],
        SHARED: lambda: [_together(shared)],
    }
    questions = {}
    for way, counting in (
        (CODED, [spec_of(compile_pattern(form, counted=True)) for form in forms]),
        (SHARED, _sharing(forms, counted=True)),
    ):
        kernel = _together(counting)
        _found([kernel], batches)
        questions[way] = kernel.asked / len(table)
    for make in ways.values():
        _found(make(), batches[-1:])  # what is compiled is compiled now
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
    return Measured(len(forms), len(found[0]), questions, times)


def _sharing(forms: Sequence[Pattern], *, counted: bool = False) -> list[PatternSpec]:
    """As a stage does it: who has nothing in common with others is searched for as by itself."""
    sharing = [compile_shared_pattern(form, counted=counted) for form in forms]
    places = shared_conditions([own.questions for own in sharing])
    return [
        spec_of(compile_pattern(form, counted=counted)) if place is None else spec_of(own.program, place)
        for form, own, place in zip(forms, sharing, places, strict=True)
    ]


def _together(specs: Sequence[PatternSpec]) -> PatternMatches:
    outputs = [pa.schema(returned_fields(spec.program, spec.results)) for spec in specs]
    return PatternMatches(tuple(Branch(spec, out) for spec, out in zip(specs, outputs, strict=True)))


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
    fewer = [one.questions[CODED] / one.questions[SHARED] for one in cases]
    coded, shared = ([one.times[ALONE] / one.times[way] for one in cases] for way in (CODED, SHARED))
    return [
        Claim(
            "patterns with answers in common ask less than they ask by themselves",
            f"from {min(fewer):.2f} to {max(fewer):.2f} times fewer questions",
            all(ratio > 1 for ratio in fewer),
        ),
        Claim(
            "patterns together cost less than by themselves",
            f"with partitions and columns in common from {min(coded):.2f} to {max(coded):.2f} times less, "
            f"with answers from {min(shared):.2f} to {max(shared):.2f} times",
            all(ratio > 1 for ratio in shared),
        ),
    ]
