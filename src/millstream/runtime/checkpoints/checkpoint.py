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
from typing import Any

from millstream import __version__
from millstream.errors import ExecutionError
from millstream.files import write_whole
from millstream.runtime.checkpoints.query_identity import Identity, difference
from millstream.runtime.checkpoints.spark_checkpoint import SparkCheckpoint
from millstream.scratch import temporary

FORMAT = 7
"""Number of the checkpoint format; a checkpoint with another number is refused."""

_FROM_A_COPY = "put back a copy of the whole directory, or start with a new one"
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
            raise checkpoint._damaged(
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

    @property
    def results(self) -> Path | None:
        return self.directory / "results" if self.durable else None

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
        theirs = self._manifest()
        if theirs["shards"] != shards:
            raise ExecutionError(
                f"the checkpoint in '{self.directory}' has {theirs['shards']} partitions, "
                f"and this run would have {shards}",
                hint=f"add --set spark.sql.shuffle.partitions={theirs['shards']}",
            )
        if theirs["identity"] != mine["identity"]:
            raise ExecutionError(
                f"query '{name}' is not the one whose checkpoint is in '{self.directory}': "
                f"{difference(theirs, mine)}",
                hint="what was remembered for the old query has no meaning for the new one: "
                "start with a new directory, or run the script as it was, "
                f"with the version that wrote the checkpoint ({theirs.get('version')})",
            )
        if self.visible:
            spark = self.spark_part
            spark.mend()
            reason = spark.damage()
            if reason is not None:
                raise self._damaged(reason)

    def _manifest(self) -> dict[str, Any]:
        """Read the manifest, and check that its format is that of this version."""
        try:
            manifest = json.loads((self.directory / _MANIFEST).read_text(encoding="utf-8"))
        except OSError as error:
            raise self._damaged(f"{_MANIFEST} cannot be read: {error.strerror or error}") from None
        except ValueError:
            raise self._damaged(f"{_MANIFEST} is not JSON") from None
        if not isinstance(manifest, dict) or "format" not in manifest:
            raise self._damaged(f"{_MANIFEST} has no format number")
        if manifest["format"] != FORMAT:
            raise ExecutionError(
                f"the checkpoint in '{self.directory}' has format {manifest['format']}, "
                f"and this version of Millstream reads format {FORMAT}",
                hint="start with a new directory, or run it with the version that wrote it"
                + (f" ({manifest['version']})" if manifest.get("version") else ""),
            )
        expected = {"shards": int, "identity": str, "queries": list, "plan": list}
        if not all(isinstance(manifest.get(name), type_) for name, type_ in expected.items()):
            raise self._damaged(f"{_MANIFEST} is incomplete")
        return manifest

    def _damaged(self, reason: str, remedy: str = _FROM_A_COPY) -> ExecutionError:
        return ExecutionError(f"the checkpoint in '{self.directory}' is damaged: {reason}", hint=remedy)

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
