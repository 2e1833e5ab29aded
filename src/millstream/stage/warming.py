"""Compiling before the first query, so that no micro-batch waits for it.

Numba keeps what it has compiled on disk, where Python workers find it. Whether it is there for these very
sources is noted in a file, because asking Numba would mean loading it.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent
COMPILED = ("kernels", "progress", "stage")


def warm_up(say: Callable[[str], None] = lambda message: None) -> None:
    """Compile what is compiled, unless that has been done before on this machine."""
    note = _note()
    if note.exists():
        return
    say("compiling the kernels, once for this version; this takes about a minute")
    from millstream.kernels.warm import compile_kernels

    compile_kernels()
    _compile_stage()
    try:
        note.parent.mkdir(parents=True, exist_ok=True)
        note.touch()
    except OSError:
        # It will be done again, that is all.
        return


def _compile_stage() -> None:
    """What stages and promises have that is compiled."""
    import numpy as np

    from millstream.progress.clauses import OrderedPer, Promises, Punctuated, RowSlack
    from millstream.progress.tracking import Piece, Tracker
    from millstream.stage.packing import by_shard, spread

    numbers = np.arange(4)
    # What comes from Arrow cannot be written to, which is another type for Numba.
    numbers.flags.writeable = False
    nobody = np.zeros(4, np.bool_)
    for clause in (RowSlack(1), OrderedPer(1), Punctuated(per=True)):
        for is_float in (False, True):
            time = numbers.astype(np.float64 if is_float else np.int64)
            Tracker(Promises((clause,)), is_float).show(Piece(time, numbers, nobody, nobody))
    by_shard(spread(numbers, numbers, 2), ~nobody, 2)


def _note() -> Path:
    """A file whose name stands for these sources on this machine."""
    digest = hashlib.sha256(f"{sys.version} {os.uname().machine}".encode())
    for folder in COMPILED:
        for path in sorted((PACKAGE / folder).glob("*.py")):
            digest.update(path.read_bytes())
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    # Sources in another place are compiled by themselves.
    digest.update(str(PACKAGE).encode())
    return cache / "millstream" / f"compiled-{digest.hexdigest()[:32]}"
