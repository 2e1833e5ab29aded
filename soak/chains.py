"""Random chains of operators against the oracle: derived streams, maintained relations, and views above them.

Every chain is run in micro-batches cut anywhere, over some shards, through restarts, optimized and not.
"""

from __future__ import annotations

import random
import time
import traceback
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context

from millstream.kernels.core import state_chunks
from millstream.kernels.udas import compiled_machine
from millstream.program.jit_loader import plain_functions
from soak.report import Finding
from tests.engine.chains import drawn
from tests.engine.test_chains import check, plan_of
from tests.engine.test_maintained_queries import compare, runnable

_AT_ONCE = 50
_PROCESSES = 2


@dataclass(frozen=True)
class Difference:
    """A seed whose chain or query has another result than the oracle, or ends with an exception."""

    kind: str
    seed: int
    message: str

    def __str__(self) -> str:
        return f"{self.kind} {self.seed}: {self.message}"


def soak(chains: int, seed: int, say: Callable[[str], None]) -> list[Finding]:
    """Draw so many chains, and as many queries over relations."""
    began = time.monotonic()
    counts: Counter[str] = Counter()
    differences: list[Difference] = []
    starts = range(seed * 10_000_000, seed * 10_000_000 + chains, _AT_ONCE)
    with ProcessPoolExecutor(_PROCESSES, mp_context=get_context("spawn"), initializer=_prepare) as pool:
        for number, (counted, found) in enumerate(pool.map(_checked, starts), 1):
            counts += counted
            differences += found
            for difference in found:
                say(str(difference))
            if number % 20 == 0:
                say(f"{number * _AT_ONCE:,} seeds: {_shown(counts)}")
    wrong = f"{len(differences)} seeds" if differences else ""
    return [
        Finding("chains", f"{chains:,} seeds", time.monotonic() - began, detail=_shown(counts), wrong=wrong)
    ]


def _shown(counts: Counter[str]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in sorted(counts.items()))


def _prepare() -> None:
    """Interpret programs, and rewrite state as often as possible."""
    vars(compiled_machine).update(functions=plain_functions)
    state_chunks.SPARE = 1


def _checked(start: int) -> tuple[Counter[str], list[Difference]]:
    counts: Counter[str] = Counter()
    found = []
    for seed in range(start, start + _AT_ONCE):
        for kind, run in (("chain", _chain), ("relation", _relation)):
            try:
                counts[f"{kind}s {'compared' if run(seed) else 'without meaning'}"] += 1
            except Exception as error:  # noqa: BLE001 (every failure is a finding)
                found.append(Difference(kind, seed, _described(error)))
    return counts, found


def _described(error: Exception) -> str:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} in {frame.name}: {str(error)[:200]!r}"


def _chain(seed: int) -> bool:
    one = drawn(seed)
    is_run = plan_of(one) is not None
    if is_run:
        check(one, seed)
    return is_run


def _relation(seed: int) -> bool:
    found = runnable.__wrapped__(seed)
    if found is not None:
        compare(*found, random.Random(seed))
    return found is not None
