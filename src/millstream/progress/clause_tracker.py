"""The state of one disorder clause of a source partition."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from millstream.progress.piece import Mask, Piece, Times
from millstream.progress.plain_data import as_data, from_data


class ClauseTracker(ABC):
    """The state of one clause; ``kept`` names the attributes in a checkpoint."""

    kept: ClassVar[tuple[str, ...]] = ("promised",)
    promised: Any
    """The watermark by this clause."""

    @abstractmethod
    def show(self, piece: Piece) -> tuple[Mask | None, Times]:
        """Follow a piece; return the tuples that break this clause, and the watermark before each tuple."""

    def as_data(self) -> dict[str, Any]:
        return {name: as_data(getattr(self, name)) for name in self.kept}

    def restore(self, data: Mapping[str, Any]) -> None:
        for name in self.kept:
            setattr(self, name, from_data(data[name]))
