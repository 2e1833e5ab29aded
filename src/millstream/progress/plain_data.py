"""Numbers and arrays as plain data for JSON, so that reading a state back cannot execute anything."""

from __future__ import annotations

import base64
import math
from typing import Any

import numpy as np

_KINDS = {"bool": np.dtype(np.bool_), "int64": np.dtype("<i8"), "float64": np.dtype("<f8")}
"""Types of arrays by their names in a state."""


def as_data(value: Any) -> Any:
    """Convert a number, a text, None or an array for JSON, which has neither arrays of bytes nor infinities.

    >>> as_data(-math.inf), as_data(np.int64(7)), as_data(None)
    ({'float': '-inf'}, 7, None)
    >>> as_data(np.array([1, 2]))
    {'array': 'int64', 'data': 'AQAAAAAAAAACAAAAAAAAAA=='}
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray):
        kind = str(value.dtype)
        return {"array": kind, "data": base64.b64encode(value.astype(_KINDS[kind]).tobytes()).decode()}
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}
    return value


def from_data(data: Any) -> Any:
    """Convert data back to the value.

    >>> from_data(as_data(np.array([1.5, np.inf])))
    array([1.5, inf])
    >>> from_data({"float": "-inf"}), from_data("a")
    (-inf, 'a')
    """
    if isinstance(data, dict):
        if "float" in data:
            return float(data["float"])
        kind = _KINDS[data["array"]]
        return np.frombuffer(base64.b64decode(data["data"]), kind).astype(kind.newbyteorder("="))
    return data
