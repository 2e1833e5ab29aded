"""Mutated scripts and random aggregate bodies through the front end: parsing, analysis, plan, code.

A base script is analysed once, statement by statement; the catalog before each statement is kept. A mutation
concerns one statement or the two from there on, so that only these are parsed and planned again.
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from millstream.analysis.definitions.statement_analyzer import analyse
from millstream.catalog import Catalog
from millstream.cli.check_command import planned, query_of
from millstream.errors import MillstreamError
from millstream.physical.query_plan import plan_without_spark
from millstream.plan.refusals import why_not
from millstream.syntax import parse_script
from soak.report import Finding
from tests.codegen.udas.bodies import aggregate_text, summing_text
from tests.codegen.udas.keyed_bodies import keyed_text
from tests.syntax.slips import VOCABULARY, by_kind, confused, raw_tokens, slipped

_ROOT = Path(__file__).parent.parent
_SLOW_SECONDS = 1.0
_CALLS = "CREATE STREAM s (x INT, y DOUBLE, z STRING, t INT) ORDER BY t;"
_QUERIES = (
    "SELECT agg(x, y, z) OVER (ROWS 3 PRECEDING) FROM s;",
    "SELECT agg(x, y, z) OVER (RANGE 5 PRECEDING) FROM s;",
    "SELECT agg(x, y, z) FROM s [RANGE 10 SLIDE 5];",
    "SELECT agg(x, y, z) OVER (ROWS 3 PRECEDING SLIDE 2) FROM s;",
)

Say = Callable[[str], None]


@dataclass(frozen=True)
class Base:
    """A statement of a script without mistakes, and the catalog that it is analysed with."""

    text: str
    before: Catalog
    following: str = ""


@dataclass
class Outcome:
    """Counts of a run, and the smallest input for each place that raised a foreign exception."""

    inputs: int = 0
    refused: int = 0
    foreign: dict[str, str] = field(default_factory=dict)
    times: Counter[str] = field(default_factory=Counter)
    slow: list[tuple[float, str]] = field(default_factory=list)
    slowest: float = 0.0

    def take(self, text: str, front_end: Callable[[], object], say: Say) -> None:
        """Run the front end on an input and record the outcome."""
        self.inputs += 1
        began = time.process_time()
        try:
            front_end()
        except MillstreamError:
            self.refused += 1
        except Exception as error:  # noqa: BLE001 (any other exception is a finding)
            place = _place_of(error)
            self.times[place] += 1
            if place not in self.foreign:
                say(f"{place}\n{text}\n")
            if len(text) < len(self.foreign.get(place, text + " ")):
                self.foreign[place] = text
        seconds = time.process_time() - began
        self.slowest = max(self.slowest, seconds)
        if seconds > _SLOW_SECONDS:
            self.slow.append((seconds, text))

    def finding(self, name: str, seconds: float) -> Finding:
        share = f"{100 * self.refused / max(1, self.inputs):.1f} % refused, slowest {self.slowest:.2f} s"
        wrong = f"{sum(self.times.values())} foreign exceptions" if self.foreign else ""
        wrong = wrong or (f"{len(self.slow)} slower than {_SLOW_SECONDS:g} s" if self.slow else "")
        return Finding(name, f"{self.inputs:,} inputs", seconds, detail=share, wrong=wrong)

    def tell(self, say: Say) -> None:
        for place, text in self.foreign.items():
            say(f"{self.times[place]} x {place}\n{text}\n")
        for seconds, text in sorted(self.slow, reverse=True)[:5]:
            say(f"{seconds:.1f} s for {len(text)} characters\n{text[:2000]}\n")


def soak(scripts: int, bodies: int, seed: int, say: Say) -> list[Finding]:
    # Classes in Python that examples name stand beside them.
    sys.path.insert(0, str(_ROOT / "examples"))
    sys.path.insert(0, str(_ROOT))
    os.chdir(_ROOT)
    return [
        _run("mutated scripts", scripts, _mutations(random.Random(seed), say), say),
        _run("random bodies", bodies, _bodies(random.Random(seed)), say),
    ]


Input = tuple[str, Catalog]


def _run(name: str, count: int, inputs: Iterator[Input], say: Say) -> Finding:
    began = time.monotonic()
    outcome = Outcome()
    for number in range(1, count + 1):
        text, catalog = next(inputs)
        outcome.take(text, lambda: checked(text, catalog), say)  # noqa: B023 (called at once)
        if number % max(1000, count // 100) == 0:
            say(f"{name}: {number:,} in {time.monotonic() - began:,.0f} s, {len(outcome.foreign)} foreign")
    outcome.tell(say)
    return outcome.finding(name, time.monotonic() - began)


def checked(text: str, catalog: Catalog) -> None:
    """Check a script as ``check`` does, and generate the code of its aggregates."""
    catalog = catalog.copy()
    for statement in parse_script(text):
        analysed = analyse(statement, catalog)
        query = query_of(analysed)
        if query is None:
            continue
        plan = planned(analysed, query)
        if why_not(plan) is None:
            plan_without_spark(plan, catalog)


# ---------------------------------------------------------------- scripts


def _mutations(chance: random.Random, say: Say) -> Iterator[Input]:
    bases = list({base.text: base for base in _bases()}.values())
    say(f"{len(bases)} statements to mutate")
    words = sorted({word for base in bases for word in raw_tokens(base.text)}) + VOCABULARY
    kinds = by_kind(words)
    while True:
        base = chance.choice(bases)
        match chance.randint(0, 9):
            case 0:
                other = chance.choice(bases)
                yield f"{slipped(chance, base.text, words)};\n{other.text}", base.before
            case 1:
                yield _spliced(chance, base.text, chance.choice(bases).text), base.before
            case 2 if base.following:
                yield f"{slipped(chance, base.text, words, 2)};\n{base.following}", base.before
            case 3 if base.following:
                yield f"{confused(chance, base.text, kinds, 1)};\n{base.following}", base.before
            case 4 | 5 | 6:
                yield confused(chance, base.text, kinds, chance.choice((1, 1, 2, 4))), base.before
            case _:
                yield slipped(chance, base.text, words, chance.choice((1, 1, 2, 4))), base.before


def _spliced(chance: random.Random, one: str, other: str) -> str:
    """The beginning of a statement with the end of another one."""
    head, tail = raw_tokens(one), raw_tokens(other)
    return " ".join((*head[: chance.randint(1, len(head))], *tail[chance.randint(0, len(tail) - 1) :]))


def _bases() -> Iterator[Base]:
    """Statements of the project: examples, library, listings, documents, and scripts with mistakes."""
    for folder in ("examples", "src/millstream/library", "tests/syntax/listings"):
        for path in sorted((_ROOT / folder).glob("*.esl")):
            yield from _statements(path.read_text(), Catalog())
    for path in sorted((_ROOT / "docs").glob("*.md")):
        blocks = re.findall(r"^```sql(?: later)?\n(.*?)^```", path.read_text(), re.MULTILINE | re.DOTALL)
        yield from _statements("\n".join(block.rstrip().rstrip(";") + ";" for block in blocks), Catalog())
    known = Catalog()
    yield from _statements((_ROOT / "tests/errors/prelude.esl").read_text(), known)
    for path in sorted((_ROOT / "tests/errors/fixtures").glob("*.esl")):
        yield from _statements(path.read_text(), known.copy())


def _statements(script: str, catalog: Catalog) -> Iterator[Base]:
    """The statements of a script that can be changed, each with the catalog before it."""
    try:
        statements = parse_script(script)
        texts = [statement.text for statement in statements]
    except MillstreamError:
        statements, texts = [], [script]
    for number, text in enumerate(texts):
        following = texts[number + 1] if number + 1 < len(texts) else ""
        with contextlib.suppress(MillstreamError):
            if len(raw_tokens(text)) > 1:
                yield Base(text, catalog.copy(), following)
        with contextlib.suppress(MillstreamError):
            if statements:
                analyse(statements[number], catalog)


# ---------------------------------------------------------------- bodies


def _bodies(chance: random.Random) -> Iterator[Input]:
    """Aggregates, half of them with slips, in queries that need their base or window version."""
    catalog = Catalog()
    for statement in parse_script(_CALLS):
        analyse(statement, catalog)
    kinds = (aggregate_text, partial(aggregate_text, window=True), summing_text, keyed_text)
    while True:
        text = chance.choice(kinds)(chance)
        if chance.choice((False, True)):
            words = [*VOCABULARY, "x", "y", "z", "t", "u", "a", "c", "inwindow", "oldest", "sqlcode"]
            text = slipped(chance, text, words, 2)
        yield f"{text.rstrip(';')};\n{chance.choice(_QUERIES)}", catalog


def _place_of(error: BaseException) -> str:
    """The exception and the innermost line of Millstream that raised it."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "millstream" in f.filename]
    last = frames[-1] if frames else traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {str(error)[:100]} at {Path(last.filename).name}:{last.lineno}"
