"""The errors of Millstream: what is wrong, where, and what to do about it.

Whatever goes wrong in a query, the person who wrote it gets one of these. Code that finds a mistake
knows a *span* (offsets into the text it was given); whoever holds the text turns the span into a
*place* (file, line, column) with :meth:`MillstreamError.locate`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from millstream.masking import masked

_WIDEST = 160
"""Characters of a line that are shown: a script may be one line of a megabyte."""

Span = tuple[int, int]
"""First and last character (both included) of a piece of source text."""


@dataclass(frozen=True)
class Source:
    r"""A text and the name that people know it by.

    >>> Source("a.esl", "SELECT x\nFROM s").place((14, 14))
    Place(file='a.esl', line=2, column=6, length=1, text='FROM s')
    """

    name: str
    text: str

    def place(self, span: Span) -> Place:
        start = min(span[0], len(self.text))
        line_start = self.text.rfind("\n", 0, start) + 1
        line_end = self.text.find("\n", start)
        line_end = len(self.text) if line_end < 0 else line_end
        # A span over several lines is underlined to the end of its first.
        length = max(1, min(span[1] + 1, line_end) - start)
        line = self.text.count("\n", 0, start) + 1
        return Place(self.name, line, start - line_start + 1, length, self.text[line_start:line_end])


@dataclass(frozen=True)
class Place:
    """A place in a source, ready to be shown."""

    file: str
    line: int
    column: int
    length: int
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"

    def underlined(self) -> str:
        """The line of text, or the part of a very long one, with the place marked under it."""
        margin = f"{self.line} | "
        first = max(0, self.column - 1 - _WIDEST // 2) if len(self.text) > _WIDEST else 0
        shown = masked(self.text)[first : first + _WIDEST]
        # Tabs are kept in the padding so that the marks stand under what they mark.
        padding = "".join(c if c == "\t" else " " for c in shown[: self.column - 1 - first])
        marks = "^" * max(1, min(self.length, len(shown) - len(padding)))
        return f"  {margin}{shown}\n  {' ' * (len(margin) - 2)}| {padding}{marks}"


class MillstreamError(Exception):
    """Something that a person has to know: a message, a hint on what to do, and a place.

    A text may have several mistakes: these are of the first, :attr:`all` has every one, and ``str(error)`` is
    the text of all of them.
    """

    def __init__(self, message: str, *, hint: str | None = None, span: Span | None = None) -> None:
        message = masked(message)
        super().__init__(message)
        self.message = message
        self.hint = None if hint is None else masked(hint)
        self.span = span
        self.place: Place | None = None
        self.more: tuple[MillstreamError, ...] = ()
        """Further mistakes of the same text, in its order."""

    @property
    def all(self) -> tuple[MillstreamError, ...]:
        """This error and those that were found with it."""
        return (self, *self.more)

    def locate(self, source: Source) -> Self:
        """Turn spans into places of this source, unless a place is known already."""
        for error in self.all:
            if error.place is None and error.span is not None:
                error.place = source.place(error.span)
        return self

    def __str__(self) -> str:
        return "\n".join(error.described() for error in self.all)

    def described(self) -> str:
        """The text of this error alone."""
        lines = [f"{self.place}: {self.message}" if self.place else self.message]
        if self.place and self.place.text.strip():
            lines.append(self.place.underlined())
        if self.hint:
            lines.append(f"Hint: {self.hint}")
        return "\n".join(lines)


class EslSyntaxError(MillstreamError):
    """The text is not ESL."""


class AnalysisError(MillstreamError):
    """The text is ESL, but breaks one of its rules."""


class UnknownNameError(AnalysisError):
    """A name is in no catalog: that of a relation, sink, function or aggregate."""

    def __init__(self, kind: str, name: str, *, span: Span | None, hint: str | None) -> None:
        super().__init__(f"unknown {kind} '{name}'", hint=hint, span=span)
        self.name = name


class NotExecutableError(MillstreamError):
    """The query is right, but this version of Millstream cannot run it yet."""


class ExecutionError(MillstreamError):
    """A query failed while it was running, or could not be started."""


class MillstreamWarning(UserWarning):
    """Something that a person may want to know, and that stops nothing."""


class NoteWarning(MillstreamWarning):
    """A statement is right, but probably not what was meant; ``check`` calls that a note."""


class RejectedTuplesWarning(MillstreamWarning):
    """Tuples of a stream were late or bad, and no clause of the stream says where they go."""


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """A hint that names the known word nearest to a wrong one, if any is near.

    >>> did_you_mean("prise", ["price", "itemID"])
    "did you mean 'price'?"
    >>> did_you_mean("prise", ["itemID"])
    """
    alike = closest(name, known, cutoff=0.6)
    return f"did you mean '{alike}'?" if alike is not None else None


def closest(name: str, known: Iterable[str], cutoff: float) -> str | None:
    """The known word nearest to a wrong one, in any case, if it is at least so near.

    >>> closest("HEDER", ["header", "sep"], cutoff=0.75)
    'header'
    """
    spellings = {word.lower(): word for word in known}
    close = difflib.get_close_matches(name.lower(), spellings, n=1, cutoff=cutoff)
    return spellings[close[0]] if close else None
