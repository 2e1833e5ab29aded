"""Creation of the class archive: ``python -m millstream.runtime.build_class_archive``.

The archive holds the classes that typical queries load; the script below runs such queries.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from millstream.errors import ExecutionError
from millstream.spark.session.class_archive import CREATE, archive_file

_SCRIPT = """
CREATE STREAM Bid (item INT, price DOUBLE, t TIMESTAMP) ORDER BY t
    USING csv OPTIONS (path 'bids.csv', header 'true') SLACK INTERVAL 2 SECONDS LATE INTO Late;
CREATE SINK totals USING parquet OPTIONS (path 'totals');
INSERT INTO totals SELECT item, window_end, sum(price) AS total
    FROM Bid [RANGE 5 SECONDS SLIDE 1 SECOND] GROUP BY item;
SELECT item, max(price) OVER (PARTITION BY item ROWS 9 PRECEDING) AS highest FROM Bid;
SELECT item, price * 2 AS twice FROM Bid WHERE item > 0;
SELECT item FROM Late;
"""
_BIDS = "item,price,t\n" + "".join(f"{i % 3},{i},2026-01-01 10:00:0{i}\n" for i in range(9))


def build() -> Path:
    """Create the archive in a process of its own and return its path."""
    file = archive_file()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=file.parent) as directory:
            unfinished = Path(directory, file.name)
            command = [sys.executable, "-m", "millstream.runtime.build_class_archive", str(unfinished)]
            subprocess.run(command, check=True, capture_output=True, text=True, cwd=directory)
            unfinished.replace(file)
    except (OSError, subprocess.CalledProcessError) as error:
        output = error.stderr.strip() if isinstance(error, subprocess.CalledProcessError) else str(error)
        raise ExecutionError(f"the class archive {file} could not be made: {output}") from error
    return file


def _record(unfinished: Path) -> None:
    """Run queries, in the current directory, in a JVM that writes its classes to the archive when it ends."""
    from pyspark import SparkContext

    from millstream.runtime.connection import Mill

    Path("bids.csv").write_text(_BIDS)
    mill = Mill(settings={"spark.driver.extraJavaOptions": f'"{CREATE}{unfinished}"'})
    for query in mill.execute(_SCRIPT):
        query.wait()
    gateway = SparkContext._gateway
    assert gateway is not None
    mill.stop()
    gateway.shutdown()
    # The JVM ends, and writes the archive, when its connections are closed.
    gateway.proc.stdin.close()
    gateway.proc.wait()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        _record(Path(sys.argv[1]))
    else:
        made = archive_file()
        sys.stdout.write(f"{made if made.exists() else build()}\n")
