"""Aggregates with random bodies in random windows: the engine agrees with the definition.

Which version of an aggregate runs is the table of section 4 of the semantics; the oracle goes by it without
compiling, sharing or deriving anything.
"""

from __future__ import annotations

import contextlib
import random
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from millstream.errors import ExecutionError
from millstream.plan.refusals import why_not
from oracle import Arrivals, Failure, Heartbeat, Row, run
from tests.codegen.udas.bodies import aggregate, summing
from tests.engine import simulated
from tests.engine.test_invariants import same
from tests.physical.planning import planned

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
STREAM = "CREATE STREAM s (k INT, x INT, y DOUBLE, z STRING, t TIMESTAMP, p BOOLEAN) ORDER BY t"
CLAUSES = (
    "",
    "SLACK INTERVAL 3 SECONDS",
    "SLACK 2 ROWS",
    "ORDERED PER (k)",
    "PUNCTUATED BY (p)",
    "HEARTBEAT INTERVAL 1 SECOND",
)
BRACKETS = (
    "[RANGE 5 SECONDS SLIDE 2 SECONDS]",
    "[TUMBLE 4 SECONDS]",
    "[RANGE 6 SECONDS SLIDE 4 SECONDS EMIT EVERY 3 SECONDS]",
    "[ROWS 3 SLIDE 2]",
    "[ROWS 2 SLIDE 3 PATTR k]",
    "[RANGE 5 SECONDS RATTR t SLIDE 2 ROWS SATTR rank(t)]",
    "[SESSION GAP 1 SECOND]",
    "[START WHEN x > 1 END WHEN x < 0]",
    "[LANDMARK START AT '2026-01-01 12:00:05' SLIDE 3 SECONDS]",
    "[NOW]",
)


pytestmark = pytest.mark.usefixtures("uncompiled")


# ---------------------------------------------------------------- scripts


@st.composite
def frames(draw: st.DrawFn, slide: str) -> str:
    if slide == " ACTIVE EXPIRATION":
        return f"RANGE INTERVAL {draw(st.integers(1, 8))} SECONDS PRECEDING"
    return draw(
        st.one_of(
            st.integers(0, 5).map(lambda n: f"ROWS {n} PRECEDING"),
            st.integers(1, 8).map(lambda n: f"RANGE INTERVAL {n} SECONDS PRECEDING"),
            st.just("ROWS UNBOUNDED PRECEDING"),
        )
    )


slides = st.one_of(
    st.just(""),
    st.integers(1, 6).map(lambda n: f" SLIDE {n}"),
    st.tuples(st.integers(1, 6), st.integers(1, 4)).map(lambda n: f" SLIDE {n[0]} EMIT EVERY {n[1]}"),
    st.integers(1, 6).map(lambda n: f" SLIDE INTERVAL {n} SECONDS"),
    st.tuples(st.integers(1, 6), st.integers(1, 4)).map(
        lambda n: f" SLIDE INTERVAL {n[0]} SECONDS EMIT EVERY INTERVAL {n[1]} SECONDS"
    ),
    st.just(" ACTIVE EXPIRATION"),
)


@st.composite
def versions(draw: st.DrawFn, name: str) -> str:
    """A base version, a window version, or both; ALGEBRAIC or not, which may be a lie."""
    algebraic = draw(st.sampled_from(["", " ALGEBRAIC"]))
    if draw(st.integers(0, 3)) == 0:
        return draw(summing(name, algebraic))
    kinds = draw(st.sampled_from([(False,), (True,), (False, True)]))
    return "\n".join(draw(aggregate(name, window=window, algebraic=algebraic)) for window in kinds)


@st.composite
def using(draw: st.DrawFn, name: str) -> str:
    """An aggregate whose panes are the affair of two others."""
    parts = draw(aggregate(f"{name}_pane")), draw(versions(f"{name}_all"))
    return "\n".join([*parts, draw(aggregate(name, algebraic=f" ALGEBRAIC USING ({name}_pane, {name}_all)"))])


@st.composite
def over_scripts(draw: st.DrawFn) -> str:
    slide = draw(slides)
    partition = draw(st.sampled_from(["", "PARTITION BY k "]))
    created = [draw(st.one_of(versions("agg"), versions("agg"), using("agg")))]
    calls = ["agg(x, y, z)"]
    if slide != " ACTIVE EXPIRATION":
        other = draw(st.sampled_from(["", "sum(x)", "agg(x, y, z)", "other(x, y, z)"]))
        created += [draw(versions("other"))] if other.startswith("other") else []
        calls += [other] if other else []
    frame = draw(frames(slide))
    same_frame = draw(st.booleans())
    overs = [f"{partition}{frame if same_frame else draw(frames(slide))}{slide}" for _ in calls]
    shown = ", ".join(
        f"{c} OVER ({over}) AS r{i}" for i, (c, over) in enumerate(zip(calls, overs, strict=True))
    )
    script = "\n".join([*created, f"SELECT k, x, t, {shown} FROM s;"])
    return without_lies(script) if "SLIDE INTERVAL" in slide else script


def without_lies(script: str) -> str:
    """Aggregates that are not ALGEBRAIC: the definition has no panes of time."""
    return re.sub(r" ALGEBRAIC( USING \([^)]*\))?", "", script)


@st.composite
def pane_scripts(draw: st.DrawFn) -> str:
    """Windows of rows that slide by several of them, for aggregates that say to be ALGEBRAIC."""
    kinds = draw(st.sampled_from([(False,), (True,), (False, True)]))
    whole = [aggregate("agg", window=window, algebraic=" ALGEBRAIC") for window in kinds]
    created = draw(st.one_of(using("agg"), st.tuples(*whole).map("\n".join), summing("agg", " ALGEBRAIC")))
    size, slide = draw(st.sampled_from([(4, 2), (6, 2), (6, 4), (8, 4), (6, 3)]))
    emit = draw(st.sampled_from(["", f" EMIT EVERY {slide * 2}", " EMIT EVERY 2"]))
    over = f"PARTITION BY k ROWS {size - 1} PRECEDING SLIDE {slide}{emit}"
    other = draw(st.sampled_from(["", f", sum(x) OVER ({over}) AS other"]))
    return f"{created}\nSELECT k, x, t, agg(x, y, z) OVER ({over}) AS r{other} FROM s;"


@st.composite
def bracket_scripts(draw: st.DrawFn) -> str:
    window = draw(st.sampled_from(BRACKETS))
    calls = ["agg(x, y, z)", *draw(st.sampled_from([[], ["count(*)"]]))]
    grouped = draw(st.booleans()) and "PATTR" not in window
    outputs = [*(["k"] if grouped or "PATTR" in window else []), "window_end"]
    outputs += [f"{call} AS r{i}" for i, call in enumerate(calls)]
    by = " GROUP BY k" if grouped else ""
    return without_lies(f"{draw(versions('agg'))}\nSELECT {', '.join(outputs)} FROM s {window}{by};")


# ---------------------------------------------------------------- streams


def arrivals(clause: str, chance: random.Random, partitions: int = 1) -> Arrivals:
    return Arrivals([_partition(clause, chance) for _ in range(partitions)])


def _partition(clause: str, chance: random.Random) -> list[Row | Heartbeat]:
    found: list[Row | Heartbeat] = []
    now = chance.randint(0, 3)
    for _ in range(chance.randint(4, 14)):
        now += chance.choice([0, 0, 1, 1, 2, 4])
        if "HEARTBEAT" in clause and chance.random() < 0.15:
            found.append(Heartbeat(_at(now)))
        lag = chance.choice([0, 0, 0, 1, 2, 5])
        found.append(
            Row(
                {
                    "k": chance.choice([1, 1, 2, 3, None]),
                    "x": chance.choice([None, -2, -1, 0, 1, 2, 3]),
                    "y": chance.choice([None, -1.5, 0.0, 0.25, 2.5]),
                    "z": chance.choice([None, "p", "q", "r"]),
                    "t": _at(now - lag),
                    "p": "PUNCTUATED" in clause and chance.random() < 0.25,
                }
            )
        )
    return found


def _at(second: int) -> datetime:
    return NOON + timedelta(seconds=second)


def flat(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Results that are rows as columns."""
    return [tuple(part for value in row for part in _parts(value)) for row in rows]


def _parts(value: Any) -> tuple[Any, ...]:
    if isinstance(value, dict):
        return tuple(value.values())
    return value if isinstance(value, tuple) else (value,)


def check(script: str, clause: str, seed: int) -> None:
    chance = random.Random(seed)
    plan = planned(f"{STREAM} {clause};\n{script}")
    assert why_not(plan) is None
    stream = arrivals(clause, chance, 1 if "HEARTBEAT" in clause else chance.choice([1, 1, 2]))
    try:
        expected = [(row.time, *row.values) for row in run(plan, {"s": stream}).rows]
    except Failure:
        # The engine may not have to look where the definition fails.
        with contextlib.suppress(ExecutionError):
            simulated.run(plan, {"s": stream}, chance)
        return
    same(flat(simulated.run(plan, {"s": stream}, chance)), flat(expected))


quickly = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))


@given(over_scripts(), st.sampled_from(CLAUSES), st.integers())
@quickly
def test_over_windows(script: str, clause: str, seed: int) -> None:
    check(script, clause, seed)


@given(pane_scripts(), st.sampled_from(CLAUSES), st.integers())
@quickly
def test_panes(script: str, clause: str, seed: int) -> None:
    check(script, clause, seed)


@given(bracket_scripts(), st.sampled_from(CLAUSES), st.integers())
@quickly
def test_windows_over_a_stream(script: str, clause: str, seed: int) -> None:
    check(script, clause, seed)
