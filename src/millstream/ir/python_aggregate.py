"""Aggregates in Python: what a class or a function has to offer, and where it is found.

| form | methods | in a window that moves |
| --- | --- | --- |
| folded (EPIC) | init, add, perhaps remove, merge, result | remove: deltas; merge: two stacks; else anew |
| four states (ESL) | initialize, iterate, perhaps terminate, expire | expire, if it has one; else anew |
| computed | compute, or just a function | anew, from a list of values for each parameter |
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from millstream.errors import AnalysisError
from millstream.types import Field

FOLDED, STATES, COMPUTED = "folded", "states", "computed"

DELTA, STACKS, EXPIRE, ANEW = "delta", "stacks", "expire", "anew"
"""Methods by which an aggregate follows a moving window."""

_STATE = 1
"""First parameters of a method before the arguments of a tuple: the state, or the context."""


@dataclass(frozen=True)
class PythonAggregate:
    """A class, object or function in Python, with its properties."""

    subject: Any = field(compare=False, repr=False)
    form: str
    way: str
    terminates: bool
    """True if there is a result after the last tuple."""


@dataclass(frozen=True)
class PythonBody:
    """An aggregate in Python for arguments of certain types."""

    name: str
    parameters: tuple[Field, ...]
    returns: tuple[Field, ...]
    python: PythonAggregate

    @property
    def goes_along(self) -> bool:
        """True if it follows a window that moves, instead of looking at each window anew."""
        return self.python.way != ANEW

    @property
    def needs_content(self) -> bool:
        """True if nothing less than all values of a window will do, even if none ever leaves it."""
        return self.python.form == COMPUTED


def load(name: str) -> Any:
    """Return the object that ``package.module:attribute`` names."""
    module_name, _, attribute = name.partition(":")
    try:
        found: Any = importlib.import_module(module_name)
    except ImportError as error:
        raise AnalysisError(
            f"cannot import '{module_name}': {error}",
            hint="the module must be on Python's path, for example beside the script that names it",
        ) from None
    except Exception as error:  # noqa: BLE001 (whatever a module of the user's does when it is imported)
        raise AnalysisError(
            f"importing '{module_name}' failed with {type(error).__name__}: {error}",
            hint=f"try it by itself: python -c 'import {module_name}'",
        ) from None
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise AnalysisError(f"module '{module_name}' has no '{attribute}'")
        found = getattr(found, part)
    return found


@dataclass(frozen=True)
class RowsOf:
    """A table function in Python: what it returns or yields, as a list of rows by the names of columns.

    >>> RowsOf("upto", range, ("n",))(2)
    [{'n': 0}, {'n': 1}]
    """

    name: str
    function: Callable[..., Any]
    columns: tuple[str, ...]

    def __call__(self, *arguments: Any) -> list[dict[str, Any]]:
        rows = self.function(*arguments)
        return [] if rows is None else [self._row(row) for row in rows]

    def _row(self, row: Any) -> dict[str, Any]:
        if isinstance(row, Mapping):
            return {column: row.get(column) for column in self.columns}
        values = row if isinstance(row, tuple | list) else (row,)
        if len(values) != len(self.columns):
            raise ValueError(
                f"{self.name} gave a row of {len(values)} values, and has {len(self.columns)} columns"
            )
        return dict(zip(self.columns, values, strict=True))


def examined(subject: Any, name: str, parameters: Sequence[str]) -> PythonAggregate:
    """Find out what form an aggregate has, and whether its methods take what they will be given."""
    made = _made(subject, name)
    count = len(parameters)

    def fits(method: str, arguments: int, given: str) -> bool:
        function = getattr(made, method, None)
        if function is None:
            return False
        _check_call(function, f"'{method}' of '{name}'", arguments, given)
        return True

    listed = ", ".join(parameters)
    with_state, with_context = (", ".join(filter(None, (first, listed))) for first in ("state", "ctx"))
    if fits("initialize", _STATE + count, with_context) | fits("iterate", _STATE + count, with_context):
        _require(made, name, "initialize", "iterate")
        expires = fits("expire", 1, "ctx")
        return PythonAggregate(subject, STATES, EXPIRE if expires else ANEW, fits("terminate", 1, "ctx"))
    if fits("add", _STATE + count, with_state):
        _require(made, name, "init")
        fits("init", 0, "")
        fits("result", 1, "state")
        removes, merges = fits("remove", _STATE + count, with_state), fits("merge", 2, "a, b")
        return PythonAggregate(subject, FOLDED, DELTA if removes else STACKS if merges else ANEW, True)
    if fits("compute", count, listed):
        return PythonAggregate(subject, COMPUTED, ANEW, True)
    if callable(made) and not inspect.isclass(subject):
        _check_call(made, f"'{name}'", count, listed)
        return PythonAggregate(subject, COMPUTED, ANEW, True)
    raise AnalysisError(
        f"'{name}' is no aggregate",
        hint="it needs init and add, or initialize and iterate, or compute; or it is a function of lists",
    )


def instance_of(subject: Any) -> Any:
    """Return the object with the methods: an instance of a class, or the object itself."""
    return subject() if inspect.isclass(subject) else subject


def parameters_of(subject: Any, name: str) -> list[str]:
    """Return the names of parameters that are not declared: those of add, iterate or the function."""
    made = _made(subject, name)
    for method, skipped in (("iterate", 1), ("add", 1), ("compute", 0)):
        if hasattr(made, method):
            return _names(getattr(made, method), name)[skipped:]
    return _names(made, name)


def functions(**given: Callable[..., Any] | None) -> Any:
    """Return an object whose methods are these functions."""
    return Functions({name: function for name, function in given.items() if function is not None})


class Functions:
    """Functions that were given one by one, as methods."""

    def __init__(self, given: dict[str, Callable[..., Any]]) -> None:
        vars(self).update(given)


def _made(subject: Any, name: str) -> Any:
    try:
        return instance_of(subject)
    except Exception as error:  # noqa: BLE001 (whatever a class of the user's does)
        raise AnalysisError(
            f"'{name}()' failed with {type(error).__name__}: {error}",
            hint="the class of an aggregate is called without arguments",
        ) from None


def _require(made: Any, name: str, *methods: str) -> None:
    for method in methods:
        if not hasattr(made, method):
            others = {"initialize": "iterate", "iterate": "initialize", "init": "add"}
            raise AnalysisError(f"'{name}' has '{others[method]}' and no '{method}'")


def _check_call(function: Any, what: str, arguments: int, given: str) -> None:
    if not callable(function):
        raise AnalysisError(f"{what} is not callable")
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return  # Functions in C do not always say.
    try:
        signature.bind(*range(arguments))
    except TypeError:
        raise AnalysisError(
            f"{what} does not take the arguments ({given})", hint=f"it is declared as {signature}"
        ) from None


def _names(function: Any, name: str) -> list[str]:
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    try:
        declared = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        declared = []
    if not declared or any(one.kind not in kinds for one in declared if one.default is one.empty):
        raise AnalysisError(
            f"the parameters of '{name}' are not known", hint="declare them: parameters='x DOUBLE, y INT'"
        )
    return [one.name for one in declared if one.default is one.empty]
