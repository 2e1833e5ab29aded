"""The library on the command line."""

from __future__ import annotations

import sys

import pytest

from millstream.cli import main
from millstream.library import bundled_aggregates


def shown(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["millstream", "library", *arguments])
    with pytest.raises(SystemExit) as stopped:
        main()
    return int(stopped.value.code or 0)


def test_all_aggregates_are_listed_in_a_line_each(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert shown(monkeypatch) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(bundled_aggregates.names())
    assert any(line.endswith("  The k items with the highest scores, the highest first.") for line in lines)


def test_the_script_of_one_is_shown_whatever_the_case(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert shown(monkeypatch, "Top_K") == 0
    assert capsys.readouterr().out == bundled_aggregates.text("top_k")


def test_a_wrong_name_gets_a_hint(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert shown(monkeypatch, "topk") == 1
    assert capsys.readouterr().err == (
        "error: there is no aggregate 'topk' in the library\nHint: did you mean 'top_k'?\n"
    )
