"""The class archive: Spark's classes, loaded and verified in advance, which halves the start-up time.

Until the first result the JVM mostly loads some 20,000 classes from jars and verifies them. It can write them
to a file when it ends, which the next JVM only has to map (class data sharing). The archive is made on
demand, by `runtime/build_class_archive.py`, because that takes half a minute and 200 MB; `embedded_session`
uses it if it exists. A JVM that it does not fit, because Java or Spark have changed, ignores it.
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
    """Return the path of the archive for this Java and this Spark, which may not exist."""
    home = os.environ.get("JAVA_HOME")
    java = Path(home, "bin", "java") if home else Path(shutil.which("java") or "java")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    identity = f"{java.resolve()} {Path(pyspark.__file__).parent} {pyspark.__version__}"
    return cache / "millstream" / f"spark-{hashlib.sha256(identity.encode()).hexdigest()[:16]}.jsa"


def java_options(user_options: str) -> str:
    """Return the options that make a JVM use the archive; the user's own options take precedence."""
    file = archive_file()
    # The JVM runs code from the file, so no other user may be able to write it.
    if CREATE in user_options or _USE in user_options or not file.exists() or not is_trusted(file.parent):
        return ""
    return f'"{_USE}{file}"'
