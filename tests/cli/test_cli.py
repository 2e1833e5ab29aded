"""The command line as people and scripts meet it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from millstream import __version__
from millstream.cli import main
from millstream.demo.bundle import DEMOS

SCRIPT = """\
CREATE STREAM Bid (itemID INT, price DOUBLE, t TIMESTAMP) ORDER BY t USING csv OPTIONS (path 'bids.csv');
CREATE SINK dear USING csv OPTIONS (path 'out');
SELECT itemID, price FROM Bid WHERE price > 10;
INSERT INTO dear SELECT itemID FROM Bid WHERE price > 1000;
SELECT hll_sketch_agg(price) FROM Bid [RANGE 1 MINUTE SLIDE 10 SECONDS];
"""


class Outcome:
    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


class Command:
    """Runs the command in this process."""

    def __init__(
        self, directory: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self._directory, self._monkeypatch, self._capsys = directory, monkeypatch, capsys

    def __call__(self, *arguments: str, **files: str) -> Outcome:
        for name, text in files.items():
            (self._directory / f"{name}.esl").write_text(text)
        self._monkeypatch.chdir(self._directory)
        # PY_COLORS and the like make typer write escape sequences where no terminal is.
        self._monkeypatch.setattr("typer.rich_utils.FORCE_TERMINAL", None)
        self._monkeypatch.setattr(sys, "argv", ["millstream", *arguments])
        with pytest.raises(SystemExit) as stopped:
            main()
        captured = self._capsys.readouterr()
        return Outcome(int(stopped.value.code or 0), captured.out, captured.err)


@pytest.fixture
def millstream(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    return Command(tmp_path, monkeypatch, capsys)


def test_check_says_that_all_is_well_and_what_cannot_be_run_yet(millstream: Command) -> None:
    done = millstream("check", "auction.esl", auction=SCRIPT)
    assert done.code == 0
    assert done.out == ""
    note, summary = done.err.splitlines()
    assert note.startswith(
        "auction.esl:5:8: note: the aggregate 'hll_sketch_agg' over a window cannot be run: its result"
    )
    assert summary == "auction.esl: 5 statements, 3 queries, no mistakes"


def test_check_names_the_place_of_a_mistake_and_exits_with_1(millstream: Command) -> None:
    done = millstream(
        "check", "auction.esl", auction=SCRIPT.replace("itemID, price FROM", "itemID, prise FROM")
    )
    assert done.code == 1
    assert done.err == (
        "error: auction.esl:3:16: unknown column 'prise'\n"
        "  3 | SELECT itemID, prise FROM Bid WHERE price > 10;\n"
        "    |                ^^^^^\n"
        "Hint: did you mean 'price'?\n"
    )


def test_check_shows_all_mistakes_of_a_statement(millstream: Command) -> None:
    done = millstream(
        "check", "auction.esl", auction=SCRIPT.replace("itemID, price FROM", "itmID, prise FROM")
    )
    assert done.code == 1
    assert [line for line in done.err.splitlines() if line.startswith("error")] == [
        "error: auction.esl:3:8: unknown column 'itmID'",
        "error: auction.esl:3:15: unknown column 'prise'",
    ]


WRONG = """\
CREATE STREAM Bid (itemID INT, price DOUBLE, t TIMESTAMP) ORDER BY t USING csv OPTIONS (path 'bids.csv');
CREATE STREAM dear AS SELECT itmID, price FROM Bid WHERE price > 10;
SELECT itemID, price FROM dear;
SELECT itemID FROM Bid WHERE;
CREATE AGGREGATE total(x DOUBLE) : DOUBLE {
    TABLE state(s DOUBLE);
    INITIALIZE : { INSERT INTO state VALUES (y); }
    ITERATE : { UPDATE state SET s = s + z; }
    TERMINATE : { INSERT INTO RETURN SELECT s FROM state; }
};
SELECT total(price), prise FROM Bid [TUMBLE 1 MINUTE];
"""


@pytest.mark.parametrize("command", ["check", "explain", "run"])
def test_all_mistakes_of_a_script_are_shown(millstream: Command, command: str) -> None:
    done = millstream(command, "wrong.esl", wrong=WRONG)
    assert done.code == 1
    assert done.out == ""
    assert [line for line in done.err.splitlines() if line.startswith("error")] == [
        "error: wrong.esl:2:30: unknown column 'itmID'",
        "error: wrong.esl:4:29: expected an expression after 'WHERE' but found the end of the statement",
        "error: wrong.esl:7:46: unknown column or parameter 'y'",
        "error: wrong.esl:8:42: unknown column or parameter 'z'",
        "error: wrong.esl:11:22: unknown column 'prise'",
    ]


def test_check_notes_what_is_probably_not_meant(millstream: Command) -> None:
    done = millstream("check", "auction.esl", auction=SCRIPT + 'SELECT "price" FROM Bid;\n')
    assert done.code == 0
    assert "auction.esl:6:8: note: \"price\" is a text, not the column 'price'; write price" in done.err


@pytest.mark.parametrize("arguments", [("--version",), ("version",)])
def test_the_version_can_be_asked_for(millstream: Command, arguments: tuple[str, ...]) -> None:
    done = millstream(*arguments)
    assert (done.code, done.out) == (0, f"millstream {__version__}\n")


def test_help_has_an_example_that_is_right_and_names_documents_that_exist(millstream: Command) -> None:
    done = millstream("--help")
    text = " ".join(done.out.split())
    example = text[text.index("CREATE STREAM") : text.index("Then millstream check")]
    assert millstream("check", "example.esl", example=example).code == 0
    documents = re.findall(r"\w+\.md", text)
    assert documents
    assert all((Path(__file__).parents[2] / "docs" / name).exists() for name in documents)


def test_help_and_a_list_name_the_demos(millstream: Command) -> None:
    lines = millstream("demo", "--list").out.splitlines()
    assert [line.split(" ")[0] for line in lines] == list(DEMOS)
    assert all(len(line) <= 110 for line in lines)
    assert all(name in millstream("demo", "--help").out for name in DEMOS)


@pytest.mark.parametrize("command", ["check", "explain", "explain --physical"])
def test_check_and_explain_do_not_even_load_spark(tmp_path: Path, command: str) -> None:
    (tmp_path / "auction.esl").write_text(SCRIPT)
    program = (
        "import contextlib, sys; from millstream.cli import main\n"
        f"sys.argv = ['millstream', *'{command}'.split(), 'auction.esl']\n"
        "with contextlib.suppress(SystemExit): main()\n"
        "sys.exit('pyspark' in sys.modules or 'numba' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True, capture_output=True)


def test_explain_shows_the_plan_of_every_query(millstream: Command) -> None:
    done = millstream("explain", "auction.esl", auction=SCRIPT)
    assert done.code == 0
    assert done.out == (
        "-- q1\n"
        "Project Bid.itemID, Bid.price\n"
        "└─ Filter Bid.price > 10\n"
        "   └─ StreamScan Bid from csv 'bids.csv' ORDER BY t\n"
        "-- INSERT INTO dear\n"
        "Project Bid.itemID\n"
        "└─ Filter Bid.price > 1000\n"
        "   └─ StreamScan Bid from csv 'bids.csv' ORDER BY t\n"
        "-- q2\n"
        "Project __agg0 AS hll_sketch_agg(price)\n"
        "└─ WindowAggregate hll_sketch_agg(price) AS __agg0\n"
        "   └─ Windowed [RANGE 1 MINUTE SLIDE 10 SECONDS WATTR t]  -- context free\n"
        "      └─ StreamScan Bid from csv 'bids.csv' ORDER BY t\n"
    )


def test_run_refuses_before_it_starts_spark_what_it_cannot_run(millstream: Command) -> None:
    done = millstream("run", "auction.esl", auction=SCRIPT)
    assert done.code == 1
    assert (
        "auction.esl:5:8: the aggregate 'hll_sketch_agg' over a window cannot be run: its result" in done.err
    )


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["check", "missing.esl"], 1, "error: cannot read 'missing.esl': No such file or directory"),
        (["run", "a.esl", "--format", "xml"], 2, "'xml'"),
        (["run", "a.esl", "--set", "nonsense"], 2, "'nonsense' is not KEY=VALUE"),
        (["frobnicate"], 2, "frobnicate"),
        (["demo", "nosuch"], 1, "nosuch"),
    ],
)
def test_wrong_usage(millstream: Command, arguments: list[str], code: int, message: str) -> None:
    done = millstream(*arguments, a="SHOW STREAMS;")
    assert done.code == code
    assert message in done.err
    assert "Traceback" not in done.err


def test_a_script_that_is_no_text(millstream: Command, tmp_path: Path) -> None:
    (tmp_path / "binary.esl").write_bytes(b"\xff\xfe\x00SELECT")
    done = millstream("check", "binary.esl")
    assert (done.code, done.err) == (1, "error: 'binary.esl' is not a text in UTF-8\n")


def test_an_empty_script_is_no_mistake(millstream: Command) -> None:
    assert millstream("check", "empty.esl", empty="-- nothing\n").code == 0


LOCAL = """\
CREATE STREAM Bid (itemID INT, price DOUBLE, t TIMESTAMP) ORDER BY t USING csv OPTIONS (path 'bids.csv');
SELECT itemID, sum(price) OVER (PARTITION BY itemID ROWS 1 PRECEDING) AS s FROM Bid;
"""


def test_the_local_engine_prints_results_and_warnings(millstream: Command, tmp_path: Path) -> None:
    (tmp_path / "bids.csv").write_text("1,10,2026-01-01\n1,5,2026-01-02\n1,x,2026-01-03\n2,1,2025-12-31\n")
    done = millstream("run", "--engine", "local", "--format", "csv", "bids.esl", bids=LOCAL)
    assert done.code == 0
    assert done.out == "itemID,s\n1,10.0\n1,15.0\n"
    assert "local engine: one process, bounded input, no checkpoints" in done.err
    assert "1 bad record" in done.err
    assert "1 late tuple" in done.err


def test_a_run_whose_records_are_all_bad_has_an_exit_code_of_its_own(
    millstream: Command, tmp_path: Path
) -> None:
    (tmp_path / "bids.csv").write_text("a,b,c\nd,e,f\n")
    done = millstream("run", "--engine", "local", "bids.esl", bids=LOCAL)
    assert done.code == 3
    assert "2 bad records" in done.err


def test_the_local_engine_writes_files(millstream: Command, tmp_path: Path) -> None:
    (tmp_path / "bids.csv").write_text("1,10,2026-01-01\n")
    done = millstream("run", "--engine", "local", "--out", "results", "bids.esl", bids=LOCAL)
    assert done.code == 0
    assert (tmp_path / "results" / "q1.csv").read_text() == "itemID,s\n1,10.0\n"


@pytest.mark.parametrize(
    ("options", "script", "message"),
    [
        (["--checkpoint", "c"], LOCAL, "--checkpoint is for Spark, which the local engine does not start"),
        ([], LOCAL.replace("sum(price)", "sum(rand())"), "the function 'rand' cannot be used"),
        ([], LOCAL + "CREATE SINK d USING csv OPTIONS (path 'o'); INSERT INTO d SELECT itemID FROM Bid;",
         "bids.esl:3:"),
    ],
)  # fmt: skip
def test_the_local_engine_refuses_by_name(
    millstream: Command, tmp_path: Path, options: list[str], script: str, message: str
) -> None:
    (tmp_path / "bids.csv").write_text("1,10,2026-01-01\n")
    done = millstream("run", "--engine", "local", *options, "bids.esl", bids=script)
    assert done.code == 1
    assert message in done.err
