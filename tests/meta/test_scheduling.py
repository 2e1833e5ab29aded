"""The order of test files, and compiled code that is too old."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.scheduling import longest_first
from tests.stale import remove_stale_code


def item(nodeid: str, *, spark: bool = False) -> Any:
    return SimpleNamespace(nodeid=nodeid, get_closest_marker=lambda name: name if spark else None)


def test_files_with_spark_come_first_and_among_them_those_that_take_longest() -> None:
    items = [
        item("short.py::a"),
        item("long.py::a"),
        item("short.py::b"),
        item("new.py::a"),
        item("mixed.py::a"),
        item("mixed.py::b", spark=True),
        item("new_with_spark.py::a", spark=True),
        item("long_with_spark.py::a", spark=True),
    ]
    seconds = {"short.py": 1, "long.py": 60, "mixed.py": 3, "long_with_spark.py": 90}
    assert [one.nodeid for one in longest_first(items, seconds)] == [
        "long_with_spark.py::a",
        "new_with_spark.py::a",
        "mixed.py::a",
        "mixed.py::b",
        "long.py::a",
        "new.py::a",
        "short.py::a",
        "short.py::b",
    ]


def test_code_that_calls_what_has_changed_is_compiled_again(tmp_path: Path) -> None:
    cache = tmp_path / "kernels" / "__pycache__"
    cache.mkdir(parents=True)
    sources = {
        "caller": "from millstream.kernels.between import x",
        "between": "from millstream.kernels import called",
        "called": "",
        "other": "",
    }
    for name, text in sources.items():
        (tmp_path / "kernels" / f"{name}.py").write_text(text)
        (cache / f"{name}._f-1.py311.nbi").touch()
    remove_stale_code(tmp_path)
    for name in sources:
        (cache / f"{name}._f-1.py311.nbi").touch()
    assert remove_stale_code(tmp_path) == []
    (tmp_path / "kernels" / "called.py").write_text("changed = True")
    assert {path.stem for path in remove_stale_code(tmp_path)} == {"caller", "between", "called"}
    assert [path.name for path in cache.glob("*.nbi")] == ["other._f-1.py311.nbi"]
