"""Compiled kernels that call what has changed since, which Numba does not notice.

Numba keeps the compiled form of a function until the file of that function changes. The functions that it
calls are part of what was compiled, and may stand in other files: a test would run them as they were before.
"""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "src" / "millstream"
_IMPORT = re.compile(
    r"^\s*(?:from|import) millstream\.([\w.]+)(?: import ([\w, ]+|\([^)]*\)))?", re.MULTILINE
)


def remove_stale_code(package: Path = PACKAGE) -> list[Path]:
    """Remove what was compiled of files that import something that has changed, and return these files."""
    note = package / "__pycache__" / "compiled.json"
    before: dict[str, str] = json.loads(note.read_text()) if note.exists() else {}
    now = digests(package)
    stale = []
    for path, digest in now.items():
        compiled = list((path.parent / "__pycache__").glob(f"{path.stem}.*.nbi"))
        if compiled and before.get(str(path.relative_to(package))) != digest:
            stale.append(path)
            for index in compiled:
                index.unlink(missing_ok=True)
    note.parent.mkdir(exist_ok=True)
    note.write_text(json.dumps({str(path.relative_to(package)): digest for path, digest in now.items()}))
    return stale


def digests(package: Path) -> dict[Path, str]:
    """A digest for each file of a package, of the file and of all files that it imports, directly or not."""
    contents = {path: path.read_bytes() for path in sorted(package.rglob("*.py"))}
    imports = {path: _imports(content.decode(), package) for path, content in contents.items()}
    found = {}
    for path in contents:
        seen: set[Path] = set()
        waiting = [path]
        while waiting:
            one = waiting.pop()
            if one in contents and one not in seen:
                seen.add(one)
                waiting += imports[one]
        digest = hashlib.sha256()
        for one in sorted(seen):
            digest.update(contents[one])
        found[path] = digest.hexdigest()
    return found


def _imports(text: str, package: Path) -> list[Path]:
    """The files that a text may import; a name that is imported may be one of a module or of its content."""
    found = []
    for module, names in _IMPORT.findall(text):
        above = package.joinpath(*module.split("."))
        found += [above.with_suffix(".py"), *(above / f"{name}.py" for name in re.findall(r"\w+", names))]
    return found


if __name__ == "__main__":
    remove_stale_code()
