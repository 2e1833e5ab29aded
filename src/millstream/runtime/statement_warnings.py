"""Notes on statements as Python warnings."""

from __future__ import annotations

import warnings
from collections.abc import Iterable

from millstream.analysis.definitions.statement_analyzer import AnalysedStatement
from millstream.analysis.notes import note_on_setting, notes_of
from millstream.errors import NoteWarning


def warn_of_settings(keys: Iterable[str]) -> None:
    """Warn about settings that are probably misspelt, at the line that calls the constructor."""
    for note in filter(None, map(note_on_setting, keys)):
        warnings.warn(note, NoteWarning, stacklevel=3)


def warn_of(statements: Iterable[AnalysedStatement]) -> None:
    """Warn about suspicious statements; the warning names the line that calls the public method."""
    for statement in statements:
        for note in notes_of(statement):
            warnings.warn(f"{note.place}: {note}", NoteWarning, stacklevel=3)
