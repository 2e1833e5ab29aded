"""Tables that get more rows than there is room for."""

from __future__ import annotations

import numpy as np

from millstream.kernels.user_tables import TableState
from millstream.types import BIGINT, Field
from millstream.uda.program import TableLayout
from millstream.uda.rows import CHANGED


def test_the_marks_of_new_rows_say_nothing() -> None:
    """Else they would be known to have changed, and changes would be lost."""
    table = TableState(TableLayout("t", "u0t0", (Field("a", BIGINT),), single=False))
    for size in (16, 100, 1000):
        used = [np.full(2 * size + 16, 255, np.uint8) for _ in range(20)]
        del used
        table.reserve(size, 1)
        assert not np.any(table["mark"] & CHANGED)
