"""Broken connections to a JVM that died are noted in the log and not on the screen."""

import logging
from pathlib import Path

from millstream.spark.session.session import _Diverting


def record(path: str) -> logging.LogRecord:
    return logging.LogRecord("root", logging.ERROR, path, 1, "a message", (), None)


def test_only_records_of_py4j_are_diverted(tmp_path: Path) -> None:
    handler = logging.FileHandler(tmp_path / "log")
    filter_ = _Diverting(handler)
    assert filter_.filter(record("/x/site-packages/mine/java_gateway.py"))
    assert not filter_.filter(record("/x/site-packages/py4j/java_gateway.py"))
    handler.close()
    assert (tmp_path / "log").read_text() == "a message\n"
