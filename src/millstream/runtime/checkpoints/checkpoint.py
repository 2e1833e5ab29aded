"""The checkpoint of a query: the files from which it continues after an interruption.

One directory with the name of the query holds Spark's own checkpoint, the control stream, the results so far,
and a manifest that identifies the query.
"""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from millstream import __version__
from millstream.errors import ExecutionError
from millstream.files import write_whole
from millstream.runtime.checkpoints.checkpoint_compatibility import (
    FORMAT,
    damaged,
    read_manifest,
    require_compatible,
)
from millstream.runtime.checkpoints.query_identity import Identity
from millstream.runtime.checkpoints.spark_checkpoint import SparkCheckpoint
from millstream.scratch import temporary

_MANIFEST = "query.json"
_TOGETHER = "+"


@dataclass(frozen=True)
class Checkpoint:
    """The directory of one query; a temporary one is removed with the query."""

    directory: Path
    durable: bool = False
    visible: bool = True
    """Whether Spark's part is on the local file system: a cluster may have another file system."""

    @classmethod
    def temporary(cls) -> Checkpoint:
        return cls(temporary("checkpoint-"))

    @classmethod
    def for_queries(cls, above: Path, *names: str, visible: bool = True) -> Checkpoint:
        """Open the checkpoint of one query, or of several that share a scan, in the user's directory."""
        directory = above / _TOGETHER.join(names)
        for other in sorted(above.glob(f"*/{_MANIFEST}")):
            before = other.parent.name.split(_TOGETHER)
            if set(before) & set(names) and before != list(names):
                raise ExecutionError(
                    f"the checkpoint in '{above}' was written by queries {_listed(before)} sharing one scan; "
                    f"this run would share it among {_listed(names)}",
                    hint="start with a new directory, or run the script without changes",
                )
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ExecutionError(
                f"the checkpoint cannot be kept in '{directory}': {error.strerror or error}",
                hint="choose another directory with --checkpoint",
            ) from None
        checkpoint = cls(directory, durable=True, visible=visible)
        if checkpoint.is_new and not checkpoint.spark_part.is_empty:
            raise damaged(
                directory,
                f"{_MANIFEST} is missing, which identifies the query",
                "put it back, or start with a new directory",
            )
        return checkpoint

    @property
    def spark(self) -> str:
        return str(self.directory / "spark")

    @property
    def spark_part(self) -> SparkCheckpoint:
        return SparkCheckpoint(self.directory / "spark")

    @property
    def done(self) -> int | None:
        """The last batch that Spark will not run again; None if it cannot be determined."""
        return self.spark_part.done if self.visible else None

    @property
    def control(self) -> str:
        return str(self.directory / "control")

    def results(self, name: str) -> Path | None:
        """Return the directory of the results of a query; several queries have one each."""
        if not self.durable:
            return None
        results = self.directory / "results"
        return results if self.directory.name == name else results / name

    @property
    def current(self) -> Path | None:
        """The directory of the materialized result."""
        return self.directory / "current" if self.durable else None

    @property
    def is_new(self) -> bool:
        """Return whether no earlier run has used the checkpoint."""
        return not (self.directory / _MANIFEST).exists()

    @property
    def since(self) -> float:
        """The time of the query's first start, in seconds since 1970."""
        manifest = self.directory / _MANIFEST
        return (manifest if manifest.exists() else self.directory).stat().st_mtime

    def claim(self, name: str, identity: Identity, shards: int, ports: Sequence[int] = ()) -> None:
        """Check that the checkpoint belongs to this query and is complete; a new one gets its manifest.

        The state of one query is meaningless to another, so a run with another identity is refused. ``ports``
        are the ports that the query reads: their lines are stored until it has read them.
        """
        if not self.durable:
            return
        path = self.directory / _MANIFEST
        mine = {
            "format": FORMAT,
            "version": __version__,
            "query": name,
            "shards": shards,
            "ports": sorted(ports),
            **identity.as_data(),
        }
        if self.is_new:
            try:
                text = json.dumps(mine, indent=1, ensure_ascii=False)
                write_whole(path, lambda file: file.write_text(text, encoding="utf-8"))
            except OSError as error:
                raise ExecutionError(
                    f"the checkpoint cannot be kept in '{self.directory}': {error.strerror or error}",
                    hint="check its permissions and the space on its disk, or choose another directory",
                ) from None
            return
        require_compatible(self.directory, name, read_manifest(path), mine)
        if self.visible:
            spark = self.spark_part
            spark.mend()
            reason = spark.damage()
            if reason is not None:
                raise damaged(self.directory, reason)

    def remove(self) -> None:
        if not self.durable:
            shutil.rmtree(self.directory, ignore_errors=True)


def readers_of(above: Path, port: int) -> list[Path]:
    """Return Spark's checkpoints of all queries under a directory that read a port, running or not."""
    directories = []
    for manifest in above.glob(f"*/{_MANIFEST}"):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            if port in json.loads(manifest.read_text(encoding="utf-8")).get("ports", ()):
                directories.append(manifest.parent / "spark")
    return directories


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)
