"""Interface that the methods of a Python UDA see: the window, tables of their own, a way to return rows."""

from __future__ import annotations

import itertools
from collections import OrderedDict, namedtuple
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from millstream.types import Field

Tuple = tuple[Any, ...]
"""Arguments of a call for one tuple of the stream."""

AsRow = Callable[[Tuple], Any]


def as_rows(parameters: Sequence[Field]) -> AsRow:
    """Return a function that shows tuples: the value itself if there is one parameter, else a named row."""
    if len(parameters) == 1:
        return _alone
    # A named tuple has no room for names that Python has a meaning for.
    row = namedtuple("row", [p.name for p in parameters], rename=True)  # type: ignore[misc]
    return row._make


def _alone(values: Tuple) -> Any:
    return values[0]


class Window:
    """Tuples in the window of an instance, oldest first, each with its number and its place."""

    def __init__(self, content: OrderedDict[int, tuple[int, Tuple]] | None = None) -> None:
        self.content: OrderedDict[int, tuple[int, Tuple]] = OrderedDict() if content is None else content
        self.gone: list[int] = []
        """Numbers of tuples that have left since the last persisting."""

    def __len__(self) -> int:
        return len(self.content)

    def insert(self, number: int, place: int, values: Tuple) -> None:
        self.content[number] = place, values

    def remove(self, number: int) -> None:
        del self.content[number]
        self.gone.append(number)

    def tuples(self) -> Iterator[Tuple]:
        return (values for _, values in self.content.values())


class WindowTuples(Sequence[Any]):
    """Tuples in the window, which the user's code may read and delete."""

    def __init__(self, window: Window, as_row: AsRow) -> None:
        self._window, self._as_row = window, as_row

    def __len__(self) -> int:
        return len(self._window)

    def __iter__(self) -> Iterator[Any]:
        return map(self._as_row, list(self._window.tuples()))

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return list(self)[index]
        number = self._number(index)
        return self._as_row(self._window.content[number][1])

    def __delitem__(self, index: Any) -> None:
        if isinstance(index, slice):
            for number in list(self._window.content)[index]:
                self._window.remove(number)
        else:
            self._window.remove(self._number(index))

    def _number(self, index: int) -> int:
        count = len(self)
        if not -count <= index < count:
            raise IndexError("there are not so many tuples in the window")
        if index < 0:
            return next(itertools.islice(reversed(self._window.content), -index - 1, None))
        return next(itertools.islice(self._window.content, index, None))

    def delete(self, unwanted: Callable[[Any], bool]) -> int:
        """Delete the tuples that satisfy a condition, as DELETE FROM inwindow does; return their number."""
        content = self._window.content
        numbers = [n for n, (_, values) in content.items() if unwanted(self._as_row(values))]
        for number in numbers:
            self._window.remove(number)
        return len(numbers)


class Tables:
    """Tables of an instance by name, ``ctx.tables.seen`` or ``ctx.tables["seen"]``: lists that begin empty.

    Any other object may be assigned instead.
    """

    def __init__(self, content: dict[str, Any] | None = None) -> None:
        object.__setattr__(self, "content", {} if content is None else content)

    content: dict[str, Any]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self.content.setdefault(name, [])

    def __setattr__(self, name: str, value: Any) -> None:
        self.content[name] = value

    def __getitem__(self, name: str) -> Any:
        return self.content.setdefault(name, [])

    def __setitem__(self, name: str, value: Any) -> None:
        self.content[name] = value

    def __delattr__(self, name: str) -> None:
        self.content.pop(name, None)

    def __contains__(self, name: str) -> bool:
        return name in self.content


class Context:
    """Argument ``ctx`` of methods."""

    def __init__(self, window: Window, tables: Tables, as_row: AsRow) -> None:
        self.tables = tables
        self.inwindow = WindowTuples(window, as_row)
        self.returned: list[Any] = []

    def oldest(self, n: int = 1) -> Any:
        """Return the n-th oldest tuple in the window, None if there are fewer."""
        return self.inwindow[n - 1] if 1 <= n <= len(self.inwindow) else None

    def ret(self, *row: Any) -> None:
        """Return a row: a value, or the values of several columns, one by one or together."""
        self.returned.append(row[0] if len(row) == 1 else row)
