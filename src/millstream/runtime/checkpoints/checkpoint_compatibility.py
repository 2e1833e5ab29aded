"""Refusal of a checkpoint that does not fit: another format, another query, other partitions, damage."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from millstream.errors import ExecutionError
from millstream.runtime.checkpoints.query_identity import difference

FORMAT = 7
"""Number of the checkpoint format; a checkpoint with another number is refused."""

_FROM_A_COPY = "put back a copy of the whole directory, or start with a new one"
_PROPERTIES = {"shards": int, "identity": str, "queries": list, "plan": list}


def read_manifest(path: Path) -> dict[str, Any]:
    """Read the manifest of a checkpoint; refuse one that is damaged or has the format of another version."""
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise damaged(path.parent, f"{path.name} cannot be read: {error.strerror or error}") from None
    except ValueError:
        raise damaged(path.parent, f"{path.name} is not JSON") from None
    if not isinstance(manifest, dict) or "format" not in manifest:
        raise damaged(path.parent, f"{path.name} has no format number")
    if manifest["format"] != FORMAT:
        raise ExecutionError(
            f"the checkpoint in '{path.parent}' has format {manifest['format']}, "
            f"and this version of Millstream reads format {FORMAT}",
            hint="start with a new directory, or run it with the version that wrote it"
            + (f" ({manifest['version']})" if manifest.get("version") else ""),
        )
    if not all(isinstance(manifest.get(name), type_) for name, type_ in _PROPERTIES.items()):
        raise damaged(path.parent, f"{path.name} is incomplete")
    return manifest


def require_compatible(
    directory: Path, query: str, theirs: Mapping[str, Any], mine: Mapping[str, Any]
) -> None:
    """Refuse a checkpoint with other partitions or of another query; ``mine`` is the manifest of this run."""
    if theirs["shards"] != mine["shards"]:
        raise ExecutionError(
            f"the checkpoint in '{directory}' has {theirs['shards']} partitions, "
            f"and this run would have {mine['shards']}",
            hint=f"add --set spark.sql.shuffle.partitions={theirs['shards']}",
        )
    if theirs["identity"] != mine["identity"]:
        raise ExecutionError(
            f"query '{query}' is not the one whose checkpoint is in '{directory}': "
            f"{difference(theirs, mine)}",
            hint="the state of the old query has no meaning for the new one: "
            "start with a new directory, or run the script as it was, "
            f"with the version that wrote the checkpoint ({theirs.get('version')})",
        )


def damaged(directory: Path, reason: str, remedy: str = _FROM_A_COPY) -> ExecutionError:
    """Return the error for a checkpoint whose files are missing or torn."""
    return ExecutionError(f"the checkpoint in '{directory}' is damaged: {reason}", hint=remedy)
