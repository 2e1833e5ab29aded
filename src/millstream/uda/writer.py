"""Generated source, line by line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class Writer:
    """Lines of Python at a depth, and names that nobody else has.

    >>> writer = Writer()
    >>> writer.line("for i in range(3):")
    >>> with writer.deeper():
    ...     writer.line("print(i)")
    >>> print(writer.text())
    for i in range(3):
        print(i)
    """

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._depth = 0
        self._names = 0

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
        """A block; one that stays empty passes."""
        if head:
            self.line(head)
        self._depth += 1
        before = len(self._lines)
        yield
        if len(self._lines) == before:
            self.line("pass")
        self._depth -= 1

    @property
    def length(self) -> int:
        """How many lines there are: who asks before and after knows whether something was written."""
        return len(self._lines)

    def cut(self, length: int) -> list[str]:
        """Take back what was written since."""
        taken = self._lines[length:]
        del self._lines[length:]
        return taken

    def put(self, lines: list[str]) -> None:
        self._lines += lines

    def text(self) -> str:
        return "\n".join(self._lines)
