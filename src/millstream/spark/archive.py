"""A class archive: Spark's classes, loaded and checked once for all, which halves the time to start.

Most of the time until the first result the JVM loads some 20,000 classes out of jars and verifies them.
It can write them down when it ends, in a form that the next JVM only has to map (class data sharing).
The archive is made on demand, with `python -m millstream.spark.archive` or `build`, because that takes
half a minute and 170 MB; `embedded_session` uses it if it is there. A JVM that it does not fit, because
Java or Spark have changed, goes without it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark

from millstream.errors import ExecutionError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_CREATE = "-XX:ArchiveClassesAtExit="
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
    if _CREATE in given or _USE in given or not file.exists():
        return ""
    return f'"{_USE}{file}"'


def build() -> Path:
    """Make the archive, in a process of its own, and say where it is."""
    file = archive_file()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=file.parent) as directory:
            unfinished = Path(directory, file.name)
            command = [sys.executable, "-m", "millstream.spark.archive", str(unfinished)]
            subprocess.run(command, check=True, capture_output=True, text=True)
            unfinished.replace(file)
    except (OSError, subprocess.CalledProcessError) as error:
        said = error.stderr.strip() if isinstance(error, subprocess.CalledProcessError) else str(error)
        raise ExecutionError(f"the class archive {file} could not be made: {said}") from error
    return file


def _record(unfinished: Path) -> None:
    """Run what most queries need in a JVM that writes its classes down when it ends."""
    from pyspark import SparkContext

    from millstream.spark.session import embedded_session

    spark = embedded_session(settings={"spark.driver.extraJavaOptions": f'"{_CREATE}{unfinished}"'})
    with tempfile.TemporaryDirectory() as directory:
        for form in ("csv", "json", "parquet"):
            path = str(Path(directory, form))
            spark.range(10).selectExpr("id AS a", "cast(id AS string) AS b").write.format(form).save(path)
            stream = spark.readStream.format(form).schema("a bigint, b string").load(path)
            mapped = stream.mapInArrow(lambda batches: batches, "a bigint, b string")
            for query, mode in ((mapped, "append"), (stream.groupBy("b").count(), "complete")):
                writer = query.writeStream.outputMode(mode).trigger(availableNow=True)
                writer.foreachBatch(_fetch).start().awaitTermination()
    gateway = SparkContext._gateway
    assert gateway is not None
    spark.stop()
    gateway.shutdown()
    # The JVM ends when nobody can talk to it any more; it writes the archive on its way out.
    gateway.proc.stdin.close()
    gateway.proc.wait()


def _fetch(batch: DataFrame, batch_id: int) -> None:
    batch.toArrow()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        _record(Path(sys.argv[1]))
    else:
        sys.stdout.write(f"{build()}\n")
