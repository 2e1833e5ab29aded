"""The log that an error names: only one that has the details."""

from pathlib import Path

import pytest
from pyspark import SparkContext

from millstream.spark.session import session


def test_only_a_log_with_content_of_our_own_jvm_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    log = tmp_path / "spark.log"
    log.touch()
    ours, callers = object(), object()
    monkeypatch.setattr(session, "_log_file", lambda: log)
    monkeypatch.setattr(session._launched, "gateway", ours)
    monkeypatch.setattr(SparkContext, "_gateway", ours)
    assert session.log_with_details() is None, "it is empty"
    log.write_text("the cause")
    assert session.log_with_details() == log
    monkeypatch.setattr(SparkContext, "_gateway", callers)
    assert session.log_with_details() is None, "the session is the caller's"
