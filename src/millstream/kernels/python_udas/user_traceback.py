"""Errors in the user's Python code, reported with the tuple and the user's own part of the traceback."""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from millstream.kernels.python_udas.value_conversion import UnfitError
from millstream.kernels.udas.compiled_machine import UserAggregateError

_OURS = str(Path(__file__).resolve().parents[2])
_FRAMES = 12
"""Number of frames that are shown: the end of a long traceback says most."""


class PythonAggregateError(UserAggregateError):
    """Failure of a Python UDA. The message has several lines and names the tuple."""

    def __init__(self, aggregate: str, reason: str) -> None:
        super().__init__(aggregate, "", reason, -1)
        # For pickle, which makes an exception from its arguments.
        self.args = (aggregate, reason)


def failed_call(aggregate: str, error: Exception, about: str) -> PythonAggregateError:
    """Return the error of a call that was about a tuple, or about a whole window."""
    said = str(error) if isinstance(error, UnfitError) else "".join(traceback.format_exception_only(error))
    said = said.strip()
    return PythonAggregateError(aggregate, "\n".join([f"{said}, for {about}", *_frames(error)]))


def shown_arguments(values: tuple[Any, ...]) -> str:
    """Return the arguments of a tuple, for messages."""
    return f"the arguments ({', '.join(map(_shown, values))})"


def pickled_state(aggregate: str, value: Any, pickle_all: Callable[[Any], bytes]) -> bytes:
    """Pickle a state: by pickle if it can, which is faster."""
    try:
        return pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    except Exception:  # noqa: BLE001 (it raises many kinds)
        try:
            return pickle_all(value)
        except Exception as error:  # noqa: BLE001
            raise PythonAggregateError(
                aggregate, f"its state cannot be pickled: {type(error).__name__}: {error}"
            ) from None


def _frames(error: Exception) -> list[str]:
    """Return the traceback without internal frames, indented to tell it from that of a worker."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith(_OURS)]
    lines = []
    for frame in frames[-_FRAMES:]:
        lines.append(f'    File "{frame.filename}", line {frame.lineno}, in {frame.name}')
        if frame.line:
            lines.append(f"      {frame.line}")
    return lines


def _shown(value: Any) -> str:
    if value is None:
        return "NULL"
    text = str(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
