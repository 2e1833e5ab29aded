"""Generated source, line by line."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from millstream.errors import AnalysisError

Remembered = TypeVar("Remembered", bound=Hashable)


_DEEPEST = 98
"""Blocks within blocks: Python reads 99 levels of indentation."""


class SourceWriter:
    """Lines of Python at a depth, and unique names.

    >>> writer = SourceWriter()
    >>> writer.line("for i in range(3):")
    >>> with writer.deeper():
    ...     writer.line("print(i)")
    >>> print(writer.text())
    for i in range(3):
        print(i)
    """

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._names = 0
        self._known: list[dict[Hashable, Any]] = [{}]
        """Computed values, by blocks, from the outermost to the current one."""

    @property
    def _depth(self) -> int:
        return len(self._known) - 1

    def line(self, text: str) -> None:
        self._lines.append("    " * self._depth + text)

    def lines(self, *texts: str) -> None:
        for text in texts:
            self.line(text)

    def name(self, prefix: str) -> str:
        self._names += 1
        return f"{prefix}{self._names}"

    @contextmanager
    def deeper(self, head: str = "") -> Iterator[None]:
        """Open a block; one that stays empty passes."""
        if self._depth >= _DEEPEST:
            raise AnalysisError(
                "this is nested too deeply to be compiled",
                hint="keep parts of it in columns of a local table, or compute them before",
            )
        if head:
            self.line(head)
        self._known.append({})
        before = len(self._lines)
        yield
        if len(self._lines) == before:
            self.line("pass")
        self._known.pop()

    # ------------------------------------------------------------ what is computed once

    def remember(self, what: Hashable, value: Any) -> None:
        """Remember a computed value that does not change in this block."""
        self._known[-1][what] = value

    def recall(self, what: Hashable) -> Any:
        """Return a value that has been computed on all paths to this place, else None."""
        return next((known[what] for known in self._known if what in known), None)

    def remembered(self, kind: type[Remembered]) -> list[tuple[Remembered, Any]]:
        """Return all of a kind that can be recalled."""
        return [(w, value) for known in self._known for w, value in known.items() if isinstance(w, kind)]

    def forget(self, what: Hashable) -> None:
        for known in self._known:
            known.pop(what, None)

    # ------------------------------------------------------------ second thoughts

    @property
    def length(self) -> int:
        """Number of lines."""
        return len(self._lines)

    def cut(self, length: int) -> list[str]:
        """Take back what was written since, in a block of its own."""
        taken = self._lines[length:]
        del self._lines[length:]
        return taken

    def put(self, lines: list[str]) -> None:
        self._lines += lines

    def text(self) -> str:
        return "\n".join(self._lines)
