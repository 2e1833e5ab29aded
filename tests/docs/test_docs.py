"""Documents against the code: every block is checked, run or compared, and so is every example.

The word after the three backticks says what a block is; words behind it say more.

    sql              ESL that is right and that this version can run; it may use what blocks above it define
    sql later        the same, but this version refuses to run it
    sql error        ESL with a mistake; it begins as the fixtures in tests/errors do, with `-- error: ` and
                     the message; `-- at: ` and `-- hint: ` may follow
    sql NAME.esl     a whole script, also written to a file of that name; `sql later NAME.esl` likewise
    csv, json, python NAME
                     the content of a file of that name
    python           is run; variables live on in the blocks below
    text output      what the python block above it prints
    console          `$ command` and what it prints; see `Terminal` for the commands
    text diagram     a drawing

Files are written to an empty directory, which also has the project's examples in it, before anything is run.
"""

from __future__ import annotations

import contextlib
import functools
import io
import re
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from millstream.analysis.definitions.statement_analyzer import (
    AnalysedStatement,
    ExplainQuery,
    InsertQuery,
    RunQuery,
    analyse,
)
from millstream.analysis.queries.resolved_query import Query
from millstream.catalog import Catalog
from millstream.cli.app import run_app
from millstream.errors import MillstreamError
from millstream.plan.builder import build
from millstream.plan.optimize import optimize
from millstream.plan.refusals import Refusal, why_not
from millstream.runtime.connection import Mill
from millstream.syntax import nodes, parse_script
from tests.local.test_examples import REFUSED

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted(
    document for pattern in ("*.md", "docs/**/*.md", "examples/**/*.md") for document in ROOT.glob(pattern)
)
EXAMPLES = sorted((ROOT / "examples").glob("*.esl"))
LATER = sorted((ROOT / "examples" / "later").glob("*.esl"))

SHOWN_ONLY = frozenset({"millstream demo", "python -m millstream.runtime.build_class_archive"})
"""Commands in consoles that are not run here; what they do is tested elsewhere."""
FILE_NAME = re.compile(r"[\w-]+\.(esl|csv|json|log|py)")
FENCE = re.compile(r"^(?P<indent> *)(?P<fence>`{3,}|~{3,})(?P<info>.*)$")


def _shown(path: Path) -> str:
    return str(path.relative_to(ROOT))


# ---------------------------------------------------------------- blocks


@dataclass(frozen=True)
class Block:
    """A fenced block of a document."""

    document: Path
    line: int
    info: str
    text: str

    def __str__(self) -> str:
        return f"{self.document.relative_to(ROOT)}:{self.line}"

    @property
    def language(self) -> str:
        return self.info.split(" ")[0]

    @property
    def words(self) -> list[str]:
        return [word for word in self.info.split(" ")[1:] if word != self.file]

    @property
    def file(self) -> str | None:
        """The name of the file that the block is the content of."""
        return next((word for word in self.info.split(" ")[1:] if FILE_NAME.fullmatch(word)), None)

    @property
    def kind(self) -> str:
        return " ".join([self.language, *self.words, *(["NAME"] if self.file else [])])


KINDS = frozenset(
    {
        *("sql", "sql later", "sql error", "sql NAME", "sql later NAME", "sql error NAME"),
        *("csv NAME", "json NAME", "python NAME"),
        *("python", "text output", "console", "text diagram"),
    }
)


@functools.cache
def blocks(document: Path) -> tuple[Block, ...]:
    found = []
    opened: tuple[int, str, str, str] | None = None
    lines: list[str] = []
    for number, line in enumerate(document.read_text().splitlines(), 1):
        fence = FENCE.match(line)
        if opened is None and fence:
            opened, lines = (number, fence["indent"], fence["fence"], fence["info"].strip()), []
        elif opened is not None and line.strip() == opened[2]:
            found.append(Block(document, opened[0], opened[3], "".join(f"{text}\n" for text in lines)))
            opened = None
        elif opened is not None:
            lines.append(line.removeprefix(opened[1]))
    assert opened is None, f"{document.name}:{opened}: the block is not closed"
    return tuple(found)


ALL_BLOCKS = [block for document in DOCUMENTS for block in blocks(document)]


@pytest.mark.parametrize("block", ALL_BLOCKS, ids=str)
def test_no_block_goes_untested(block: Block) -> None:
    assert block.kind in KINDS, f"{block}: a block '{block.info}' is none of {', '.join(sorted(KINDS))}"
    if block.kind == "text output":
        above = [b for b in blocks(block.document) if b.line < block.line]
        assert above, f"{block}: nothing above prints this"
        assert above[-1].kind == "python", f"{block}: the block above prints nothing"


@pytest.mark.parametrize("document", DOCUMENTS, ids=_shown)
def test_links_lead_somewhere(document: Path) -> None:
    prose = re.sub(r"```.*?```", "", document.read_text(), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", prose):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        linked = (document.parent / path).resolve() if path else document
        assert linked.exists(), f"{document.name}: {target} does not exist"
        if anchor:
            assert anchor in _anchors(linked), f"{document.name}: there is no heading for {target}"


def _anchors(document: Path) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", document.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


# ---------------------------------------------------------------- ESL


@dataclass
class Checked:
    """Results of the ESL of a document: mistakes by line, and the queries of each block."""

    errors: dict[int, MillstreamError] = field(default_factory=dict)
    statements: dict[int, list[AnalysedStatement]] = field(default_factory=dict)


@functools.cache
def checked(document: Path) -> Checked:
    """The blocks of a document one after the other, each with the catalog that those above it have made."""
    result, catalog = Checked(), Catalog()
    for block in blocks(document):
        if block.language == "python" and block.file:
            # Aggregates in Python are looked at when they are created.
            module = sys.modules[Path(block.file).stem] = ModuleType(Path(block.file).stem)
            exec(compile(block.text, block.file, "exec"), vars(module))
        if block.language != "sql":
            continue
        # A file is a script by itself; and what a mistaken block has defined must not be there below it.
        own = Catalog() if block.file else catalog.copy()
        try:
            result.statements[block.line] = _analysed(block.text, block.file or str(block), own)
        except MillstreamError as error:
            result.errors[block.line] = error
        else:
            catalog = catalog if block.file else own
    for block in blocks(document):
        sys.modules.pop(Path(block.file or "").stem, None)
    return result


def _analysed(text: str, name: str, catalog: Catalog) -> list[AnalysedStatement]:
    return [analyse(statement, catalog) for statement in parse_script(text, name)]


def _queries(statements: list[AnalysedStatement]) -> Iterator[Query]:
    for statement in statements:
        if isinstance(statement.meaning, RunQuery | InsertQuery | ExplainQuery):
            yield statement.meaning.query


def _refusals(statements: list[AnalysedStatement]) -> list[Refusal | None]:
    return [why_not(optimize(build(query))) for query in _queries(statements)]


@pytest.mark.parametrize("block", [b for b in ALL_BLOCKS if b.language == "sql"], ids=str)
def test_esl(block: Block) -> None:
    result = checked(block.document)
    error = result.errors.get(block.line)
    if "error" in block.words:
        assert error is not None, f"{block}: there is no mistake in it"
        place = f"{error.place.line}:{error.place.column}" if error.place else None
        said = {"error": error.message, "at": place, "hint": error.hint}
        header = dict(re.findall(r"^-- (error|at|hint): (.+)$", block.text, re.MULTILINE))
        assert header["error"] == error.message
        assert header.items() <= said.items(), f"{block}: {error}"
        return
    assert error is None, f"{block}: {error}"
    refusals = _refusals(result.statements[block.line])
    if "later" in block.words:
        definitions = (nodes.CreateAggregate, nodes.CreateView)
        trees = [statement.tree for statement in parse_script(block.text)]
        assert refusals or any(isinstance(tree, definitions) for tree in trees), f"{block}: nothing to run"
        assert None not in refusals, f"{block}: this version can run this: it is not for later"
    else:
        assert not any(refusals), f"{block}: this version cannot run this: mark the block `sql later`"


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_can_be_run(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(path.parent)
    assert not any(_refusals(_analysed(path.read_text(), path.name, Catalog())))


@pytest.mark.parametrize("path", LATER, ids=lambda path: path.stem)
def test_an_example_for_later_says_so_and_cannot_be_run(path: Path) -> None:
    assert path.read_text().startswith("-- CHECKED ONLY: this version of Millstream cannot run ")
    refusals = _refusals(_analysed(path.read_text(), path.name, Catalog()))
    assert refusals
    assert None not in refusals, f"{path.name}: a query of it can be run: move it to examples/"


# ---------------------------------------------------------------- commands


class Terminal:
    """Runs the commands of console blocks in this process: check, explain, library, run, cat, echo $?.

    Of make it only looks whether there is such a target.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, spark: SparkSession | None = None) -> None:
        self._monkeypatch = monkeypatch
        self._spark = spark
        self.exit_code = 0

    def show(self, block: Block) -> None:
        """Run the commands of a block, as far as they can be run here, and compare what they print."""
        for command, expected in _commands(block):
            printed = self._printed(shlex.split(command), command, block)
            if printed is not None:
                assert printed.rstrip("\n") == expected, f"{block}: $ {command}"

    def _printed(self, words: list[str], command: str, block: Block) -> str | None:
        match words:
            case ["millstream", "check" | "explain" | "library", *_]:
                return self.run(words)
            case ["millstream", "run", "--engine", "local", *_]:
                return self.run(words)
            case ["millstream", "run", *_]:
                return self.run(words) if self._spark else None
            case ["cat", name]:
                return Path(name).read_text() if self._spark else None
            case ["echo", "$?"]:
                return f"{self.exit_code}\n" if self._spark else None
            case ["make", target]:
                makefile = (ROOT / "Makefile").read_text()
                assert re.search(rf"^{target}:.*##", makefile, re.MULTILINE), f"{block}: no target {target}"
                return None
        assert command in SHOWN_ONLY, f"{block}: $ {command} is not tested"
        return None

    def run(self, words: list[str]) -> str:
        # One for both, so that lines stand in the order in which they were written.
        screen = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
        with self._monkeypatch.context() as patch:
            patch.setattr(sys, "argv", words)
            patch.setattr(sys, "stdout", screen)
            patch.setattr(sys, "stderr", screen)
            if self._spark is not None:
                patch.setattr("millstream.runtime.script_run.Mill", functools.partial(_mill, self._spark))
            with pytest.raises(SystemExit) as ended:
                run_app()
        self.exit_code = int(ended.value.code or 0)
        return screen.buffer.getvalue().decode()  # type: ignore[attr-defined]

    def import_from(self, directory: Path) -> None:
        self._monkeypatch.syspath_prepend(directory.resolve())
        if self._spark is not None:
            for module in directory.glob("*.py"):
                # Workers have been started already, with the path of then.
                self._spark.sparkContext.addPyFile(str(module.resolve()))


def _commands(block: Block) -> Iterator[tuple[str, str]]:
    """The commands of a console, each with what it prints."""
    parts = re.split(r"^\$ (.*)\n", block.text, flags=re.MULTILINE)
    assert not parts[0], f"{block}: begins without a command"
    for command, output in zip(parts[1::2], parts[2::2], strict=True):
        yield command, output.rstrip("\n")


def _mill(spark: SparkSession, *_: Any, checkpoint: str | Path | None = None, **__: Any) -> Mill:
    """Instead of Mill(), which would start a Spark of its own and stop it at the end."""
    return Mill(spark, checkpoint=Path(checkpoint) if checkpoint else None)


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty directory to be in, where the examples are at hand."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def session(spark: SparkSession, directory: Path) -> Iterator[SparkSession]:
    """A session without the tables and functions of others, with its relative paths in the directory."""
    own = spark.newSession()
    own.conf.set("spark.sql.shuffle.partitions", "2")
    jvm: Any = own._jvm
    files = jvm.org.apache.hadoop.fs.FileSystem.get(own._jsc.hadoopConfiguration())
    before = files.getWorkingDirectory()
    # A JVM cannot change its directory, but what Spark asks for files can.
    files.setWorkingDirectory(jvm.org.apache.hadoop.fs.Path(directory.as_uri()))
    yield own
    files.setWorkingDirectory(before)


def _write_files(document: Path) -> None:
    for block in blocks(document):
        if block.file:
            Path(block.file).write_text(block.text)


def _has_commands(document: Path) -> bool:
    return any(block.kind == "console" for block in blocks(document))


@pytest.mark.usefixtures("directory")
@pytest.mark.parametrize("document", [*filter(_has_commands, DOCUMENTS)], ids=_shown)
def test_commands_that_need_no_spark(document: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _write_files(document)
    terminal = Terminal(monkeypatch)
    for block in blocks(document):
        if block.kind == "console":
            terminal.show(block)


# ---------------------------------------------------------------- with Spark


_ON_SPARK = re.compile(r"^\$ millstream run (?!--engine local )", re.MULTILINE)


def _needs_spark(document: Path) -> bool:
    return any(b.kind == "python" or re.search(_ON_SPARK, b.text) for b in blocks(document))


@pytest.mark.spark
@pytest.mark.parametrize("document", [*filter(_needs_spark, DOCUMENTS)], ids=_shown)
def test_document_from_beginning_to_end(
    document: Path, session: SparkSession, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("millstream.connect", functools.partial(_mill, session))
    _write_files(document)
    terminal = Terminal(monkeypatch, session)
    terminal.import_from(directory)
    variables: dict[str, Any] = {"__name__": "__main__"}
    following = iter([*blocks(document)[1:], None])
    try:
        for block, after in zip(blocks(document), following, strict=True):
            if block.kind == "console":
                terminal.show(block)
            elif block.kind == "python":
                printed = _run_python(block, variables)
                expected = after.text if after is not None and after.kind == "text output" else ""
                assert printed == expected, f"{block}: prints something else"
    finally:
        # A document may leave its connection open, as people do.
        for mill in (value for value in variables.values() if isinstance(value, Mill)):
            mill.stop()


def _run_python(block: Block, variables: dict[str, Any]) -> str:
    # Errors shall show the lines of the document.
    source = "\n" * block.line + block.text
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(source, str(block.document), "exec"), variables)
    return printed.getvalue()


ON_SPARK = frozenset({*REFUSED, "joins", "late", "over", "wid"})
"""Examples that only Spark can run, and some others: tests/local runs all others without it."""


@pytest.mark.usefixtures("directory")
@pytest.mark.parametrize(
    "path",
    [p if p.stem in ON_SPARK else pytest.param(p, marks=pytest.mark.soak) for p in EXAMPLES],
    ids=lambda path: path.stem,
)
def test_example(path: Path, session: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal(monkeypatch, session)
    terminal.import_from(Path("examples"))
    printed = terminal.run(["millstream", "run", f"examples/{path.name}", "--out", "out"])
    assert terminal.exit_code == 0, printed
    expected = ROOT / "examples" / "expected" / path.stem
    assert _contents(Path("out")) == _contents(expected)


def _contents(directory: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted(directory.iterdir())}
