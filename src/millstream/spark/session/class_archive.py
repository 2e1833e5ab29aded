"""A class archive: Spark's classes, loaded and checked once for all, which halves the time to start.

Most of the time until the first result the JVM loads some 20,000 classes out of jars and verifies them.
It can write them down when it ends, in a form that the next JVM only has to map (class data sharing).
The archive is made on demand, by `runtime/build_class_archive.py`, because that takes half a minute and 200
MB; `embedded_session` uses it if it is there. A JVM that it does not fit, because Java or Spark have changed,
goes without it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

import pyspark

from millstream.files import is_trusted

CREATE = "-XX:ArchiveClassesAtExit="
_USE = "-XX:SharedArchiveFile="


def archive_file() -> Path:
    """Where the archive for this Java and this Spark is, if there is one."""
    home = os.environ.get("JAVA_HOME")
    java = Path(home, "bin", "java") if home else Path(shutil.which("java") or "java")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    identity = f"{java.resolve()} {Path(pyspark.__file__).parent} {pyspark.__version__}"
    return cache / "millstream" / f"spark-{hashlib.sha256(identity.encode()).hexdigest()[:16]}.jsa"


def java_options(given: str) -> str:
    """The options that make a JVM use the archive; those given by the user know better."""
    file = archive_file()
    # A JVM runs the code in it: no other user may be able to write it.
    if CREATE in given or _USE in given or not file.exists() or not is_trusted(file.parent):
        return ""
    return f'"{_USE}{file}"'
