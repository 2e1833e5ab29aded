"""Where a query keeps what it needs to go on after an interruption.

Everything is under one directory with the name of the query: Spark's own checkpoint, the control stream, the
results so far, and a manifest that says which query it was.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from millstream.errors import ExecutionError
from millstream.scratch import temporary

FORMAT = 5
_MANIFEST = "query.json"
_TOGETHER = "+"


@dataclass(frozen=True)
class Checkpoint:
    """The directory of one query; a temporary one goes with the query."""

    directory: Path
    durable: bool = False

    @classmethod
    def temporary(cls) -> Checkpoint:
        return cls(temporary("checkpoint-"))

    @classmethod
    def kept(cls, above: Path, *names: str) -> Checkpoint:
        """That of a query, or of some that share what they read, under a directory that the user named."""
        directory = above / _TOGETHER.join(names)
        for other in sorted(above.glob(f"*/{_MANIFEST}")):
            before = other.parent.name.split(_TOGETHER)
            if set(before) & set(names) and before != list(names):
                raise ExecutionError(
                    f"the checkpoint in '{above}' is of a script that read a stream together for "
                    f"{_listed(before)}, and now it would be for {_listed(names)}",
                    hint="start with a new directory, or run the script as it was",
                )
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ExecutionError(
                f"the checkpoint cannot be kept in '{directory}': {error.strerror or error}",
                hint="choose another directory with --checkpoint",
            ) from None
        return cls(directory, durable=True)

    @property
    def spark(self) -> str:
        return str(self.directory / "spark")

    @property
    def control(self) -> str:
        return str(self.directory / "control")

    @property
    def results(self) -> Path | None:
        return self.directory / "results" if self.durable else None

    @property
    def current(self) -> Path | None:
        """Where the current result of the query is kept, if anybody may ask for it."""
        return self.directory / "current" if self.durable else None

    @property
    def is_new(self) -> bool:
        """Whether no run has been here before."""
        return not (self.directory / _MANIFEST).exists()

    @property
    def since(self) -> float:
        """When the query was first started, in seconds since 1970."""
        manifest = self.directory / _MANIFEST
        return (manifest if manifest.exists() else self.directory).stat().st_mtime

    def claim(self, name: str, plan: str, shards: int) -> None:
        """Make sure that what is here belongs to this query.

        State of one query means nothing to another: a run with another plan is refused.
        """
        if not self.durable:
            return
        path = self.directory / _MANIFEST
        mine = {"format": FORMAT, "query": name, "shards": shards, "plan": plan.splitlines()}
        try:
            if self.is_new:
                unfinished = path.with_suffix(".unfinished")
                unfinished.write_text(json.dumps(mine, indent=1), encoding="utf-8")
                unfinished.replace(path)
                return
            theirs = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ExecutionError(f"the checkpoint in '{self.directory}' cannot be used: {error}") from None
        if theirs.get("format") != FORMAT:
            raise ExecutionError(
                f"the checkpoint in '{self.directory}' was made by another version of Millstream",
                hint="start again with a new directory",
            )
        if theirs["shards"] != shards:
            raise ExecutionError(
                f"the checkpoint in '{self.directory}' has {theirs['shards']} partitions, "
                f"and this run would have {shards}",
                hint=f"add --set spark.sql.shuffle.partitions={theirs['shards']}",
            )
        if theirs["plan"] != mine["plan"]:
            difference = _difference(theirs["plan"], plan.splitlines())
            raise ExecutionError(
                f"query '{name}' is not the one whose checkpoint is in '{self.directory}': {difference}",
                hint="what was remembered for the old query has no meaning for the new one: "
                "start with a new directory, or run the script as it was",
            )

    def remove(self) -> None:
        if not self.durable:
            shutil.rmtree(self.directory, ignore_errors=True)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def _difference(old: list[str], new: list[str]) -> str:
    for before, after in zip(old, new, strict=False):
        if before != after:
            return f"it had '{before.strip(' │├└─')}' and now has '{after.strip(' │├└─')}'"
    return "it had other steps"
