"""Aggregates in Python by definition: the user's code on the whole content of each window.

The methods remove and merge only save work and are never called. An aggregate in four states with expire
follows its window tuple by tuple, because its result may depend on that.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Sequence
from typing import Any

from millstream.ir.python_aggregate import COMPUTED, STATES, PythonBody, instance_of

Arguments = Sequence[Any]


def of_content(body: PythonBody, content: Sequence[Arguments]) -> list[Any]:
    """Return the results for a finite content: of its last tuple, and after it."""
    if not content:
        return []
    subject = instance_of(body.python.subject)
    if body.python.form == COMPUTED:
        compute = getattr(subject, "compute", subject)
        return [compute(*([values[i] for values in content] for i in range(len(body.parameters))))]
    if body.python.form == STATES:
        instance = Instance(body)
        returned: list[Any] = []
        for number, values in enumerate(content):
            returned = instance.enter(number, values)
        return [*returned, *instance.terminate()]
    state = subject.init()
    for values in content:
        state = subject.add(state, *values)
    return [subject.result(state) if hasattr(subject, "result") else state]


class _InWindow(list[Any]):
    """The tuples in the window, with their numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers: list[int] = []

    def __delitem__(self, index: Any) -> None:
        super().__delitem__(index)
        del self.numbers[index]

    def delete(self, unwanted: Callable[[Any], bool]) -> int:
        rows = [i for i, row in enumerate(self) if unwanted(row)]
        for i in reversed(rows):
            del self[i]
        return len(rows)


class _Tables(dict[str, Any]):
    def __missing__(self, name: str) -> Any:
        self[name] = []
        return self[name]

    def __getattr__(self, name: str) -> Any:
        return self[name]

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value


class _Context:
    def __init__(self, inwindow: _InWindow, tables: _Tables) -> None:
        self.inwindow, self.tables = inwindow, tables
        self.returned: list[Any] = []

    def oldest(self, n: int = 1) -> Any:
        return self.inwindow[n - 1] if n <= len(self.inwindow) else None

    def ret(self, *row: Any) -> None:
        self.returned.append(row[0] if len(row) == 1 else row)


class Instance:
    """A running aggregate in four states, and its window."""

    def __init__(self, body: PythonBody) -> None:
        self._object = instance_of(body.python.subject)
        self._tables = _Tables()
        self._begun = False
        self.inwindow = _InWindow()
        names = [p.name for p in body.parameters]
        # One column is a value by itself.
        self._row = namedtuple("row", names, rename=True) if len(names) > 1 else None

    def _call(self, method: str, arguments: Arguments = ()) -> list[Any]:
        context = _Context(self.inwindow, self._tables)
        getattr(self._object, method)(context, *arguments)
        return context.returned

    def enter(self, number: int, values: Arguments) -> list[Any]:
        """Add a tuple."""
        self.inwindow.append(values[0] if self._row is None else self._row(*values))
        self.inwindow.numbers.append(number)
        method = "iterate" if self._begun else "initialize"
        self._begun = True
        return self._call(method, values)

    def leave(self, number: int) -> list[Any]:
        """Remove the tuple with this number, if it has not been deleted before."""
        if number not in self.inwindow.numbers:
            return []
        returned = self._call("expire")
        if number in self.inwindow.numbers:
            del self.inwindow[self.inwindow.numbers.index(number)]
        return returned

    def terminate(self) -> list[Any]:
        return self._call("terminate") if hasattr(self._object, "terminate") else []
