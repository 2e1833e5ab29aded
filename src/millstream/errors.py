"""Errors and warnings of Millstream, each with a message, a place in the source text, and a hint.

Every failure of a query reaches its author as one of these errors. Code that detects a mistake knows a *span*
(offsets into the text it was given); the owner of the text turns the span into a *place* (file, line, column)
with :meth:`MillstreamError.locate`.
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
    r"""A text and its name in messages.

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
        # A span of several lines is underlined to the end of its first line.
        length = max(1, min(span[1] + 1, line_end) - start)
        line = self.text.count("\n", 0, start) + 1
        return Place(self.name, line, start - line_start + 1, length, self.text[line_start:line_end])


@dataclass(frozen=True)
class Place:
    """A place in a source, with its line of text."""

    file: str
    line: int
    column: int
    length: int
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"

    def underlined(self) -> str:
        """Return the line of text, or the part of a very long one, with the place marked under it."""
        margin = f"{self.line} | "
        first = max(0, self.column - 1 - _WIDEST // 2) if len(self.text) > _WIDEST else 0
        shown = masked(self.text)[first : first + _WIDEST]
        # Tabs stay in the padding, so that the marks stand under the marked text.
        padding = "".join(c if c == "\t" else " " for c in shown[: self.column - 1 - first])
        marks = "^" * max(1, min(self.length, len(shown) - len(padding)))
        return f"  {margin}{shown}\n  {' ' * (len(margin) - 2)}| {padding}{marks}"


class MillstreamError(Exception):
    """Base class: a message, a hint with the remedy, and a place.

    A text may have several mistakes: the attributes describe the first, :attr:`all` has every one, and
    ``str(error)`` is the text of all of them.
    """

    def __init__(self, message: str, *, hint: str | None = None, span: Span | None = None) -> None:
        message = masked(message)
        super().__init__(message)
        self.message = message
        self.hint = None if hint is None else masked(hint)
        self.span = span
        self.place: Place | None = None
        self.more: tuple[MillstreamError, ...] = ()
        """Further errors of the same text, in its order."""

    @property
    def all(self) -> tuple[MillstreamError, ...]:
        """Return this error and the further errors of its text."""
        return (self, *self.more)

    def locate(self, source: Source) -> Self:
        """Set the places of errors that have a span and no place yet."""
        for error in self.all:
            if error.place is None and error.span is not None:
                error.place = source.place(error.span)
        return self

    def __str__(self) -> str:
        return "\n".join(error.described() for error in self.all)

    def described(self) -> str:
        """Return the text of this error alone."""
        lines = [f"{self.place}: {self.message}" if self.place else self.message]
        if self.place and self.place.text.strip():
            lines.append(self.place.underlined())
        if self.hint:
            lines.append(f"Hint: {self.hint}")
        return "\n".join(lines)


class EslSyntaxError(MillstreamError):
    """A text that is not ESL."""


class AnalysisError(MillstreamError):
    """A statement that breaks a rule of ESL."""


class UnknownNameError(AnalysisError):
    """A name of a relation, sink, function or aggregate that is in no catalog."""

    def __init__(self, kind: str, name: str, *, span: Span | None, hint: str | None) -> None:
        super().__init__(f"unknown {kind} '{name}'", hint=hint, span=span)
        self.name = name


class NotExecutableError(MillstreamError):
    """A valid query that this version of Millstream cannot run."""


class ExecutionError(MillstreamError):
    """A failure of a query at its start or while it runs."""


class MillstreamWarning(UserWarning):
    """Base class of warnings."""


class NoteWarning(MillstreamWarning):
    """A note of ``check`` on a valid statement that probably does something other than intended."""


class RejectedTuplesWarning(MillstreamWarning):
    """A report of late or bad tuples of a stream that has no clause for them."""


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """Return a hint that names the known word nearest to a wrong one, if any is near.

    >>> did_you_mean("prise", ["price", "itemID"])
    "did you mean 'price'?"
    >>> did_you_mean("prise", ["itemID"])
    """
    alike = closest(name, known, cutoff=0.6)
    return f"did you mean '{alike}'?" if alike is not None else None


def closest(name: str, known: Iterable[str], cutoff: float) -> str | None:
    """Return the known word nearest to a wrong one, in any case, if their similarity reaches ``cutoff``.

    >>> closest("HEDER", ["header", "sep"], cutoff=0.75)
    'header'
    """
    spellings = {word.lower(): word for word in known}
    close = difflib.get_close_matches(name.lower(), spellings, n=1, cutoff=cutoff)
    return spellings[close[0]] if close else None
