"""Examples on the local engine: the results that Spark has, or a refusal by name."""

import shutil
import sys
from pathlib import Path

import pytest

from millstream.cli.local_command import run_script_locally
from millstream.errors import NotExecutableError

ROOT = Path(__file__).parents[2]
REFUSED = {
    "archive": "is a sink of Spark",
    "auction": "IN with a query cannot be used",
    "double_bottom": "built-in aggregates over a table",
    "traffic": "a query over tables only",
    "views": "a query over tables only",
}
EXAMPLES = sorted(path.stem for path in (ROOT / "examples").glob("*.esl"))


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return tmp_path


def run(name: str) -> None:
    script = Path("examples") / f"{name}.esl"
    run_script_locally(script.read_text(), str(script), "csv", Path("out"))


@pytest.mark.usefixtures("directory")
@pytest.mark.parametrize("name", [name for name in EXAMPLES if name not in REFUSED])
def test_results_are_those_of_spark(name: str) -> None:
    run(name)
    assert contents(Path("out")) == contents(ROOT / "examples" / "expected" / name)


@pytest.mark.usefixtures("directory")
@pytest.mark.parametrize("name", REFUSED)
def test_an_example_that_needs_spark_is_refused_by_name(name: str) -> None:
    with pytest.raises(NotExecutableError, match=REFUSED[name]):
        run(name)


def contents(directory: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted(directory.iterdir())}
