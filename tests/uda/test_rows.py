"""Helpers for the rows of local tables."""

from __future__ import annotations

import numpy as np

from millstream.uda.rows import grown


def test_what_is_new_in_a_grown_array_is_zero() -> None:
    """Memory that was used before would have marks of rows that are long gone, and changes would be lost."""
    for size in (16, 100, 1000):
        used = [np.full(2 * size + 16, 255, np.uint8) for _ in range(20)]
        del used
        for _ in range(20):
            larger = grown(np.full(size, 7, np.uint8))
            assert larger.tolist() == [7] * size + [0] * (size + 16)
