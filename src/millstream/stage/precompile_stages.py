"""Compiling before the first query, so that no micro-batch waits for it.

Compiled code is in the directory of these very sources, where Python workers find it. Whether all of it is
there is noted in a file, because asking Numba would mean loading it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from millstream.code_cache import code_directory, remove_old_code


def warm_up(say: Callable[[str], None] = lambda message: None) -> None:
    """Compile all functions of kernels that are not in the code cache of this machine."""
    directory = code_directory()
    note = None if directory is None else directory / "kernels.compiled"
    if note is not None and note.exists():
        return
    say("compiling the kernels, once for this version; this takes about a minute")
    from millstream.kernels.precompile import compile_kernels

    compile_kernels()
    _compile_stage()
    if note is not None:
        # Where that fails, it will be done again.
        with contextlib.suppress(OSError):
            note.touch()
        remove_old_code()


def _compile_stage() -> None:
    """Compile the functions of stages and promises."""
    import numpy as np

    from millstream.progress.disorder_clauses import OrderedPer, Promises, Punctuated, RowSlack
    from millstream.progress.piece import Piece
    from millstream.progress.watermark_tracker import Tracker
    from millstream.stage.packer import by_shard, spread

    numbers = np.arange(4)
    # Arrow's arrays are read-only, which is another type for Numba.
    numbers.flags.writeable = False
    no_rows = np.zeros(4, np.bool_)
    for clause in (RowSlack(1), OrderedPer(1), Punctuated(per=True)):
        for is_float in (False, True):
            time = numbers.astype(np.float64 if is_float else np.int64)
            Tracker(Promises((clause,)), is_float).show(Piece(time, numbers, no_rows, no_rows))
    by_shard(spread(numbers, numbers, 2), ~no_rows, 2)
