"""The commands and their options. Heavy modules are imported by the command that needs them."""

from __future__ import annotations

import enum
import os
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from millstream import __version__
from millstream.errors import MillstreamError
from millstream.masking import masked

_EPILOG = """
Example: [bold]millstream check first.esl[/bold], then [bold]millstream run first.esl[/bold]. The script:

CREATE STREAM Bid (item INT, price DOUBLE, at TIMESTAMP)

  ORDER BY at USING csv OPTIONS (path 'bids.csv');

SELECT window_end, max(price) FROM Bid [TUMBLE 1 MINUTE];

Documents: docs/ beside the sources. Begin with tutorial.md; coming_from.md is for those who know
Flink, Spark or ksqlDB.
"""

app = typer.Typer(
    name="millstream",
    help="A data stream management system on Spark: streaming SQL with windows, aggregates and patterns.",
    epilog=_EPILOG,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


class Format(enum.StrEnum):
    """How results are printed."""

    table = "table"
    csv = "csv"
    json = "json"


Script = Annotated[str, typer.Argument(metavar="SCRIPT", help="An ESL script, or - for standard input.")]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="A setting, Spark's or Millstream's; may be repeated."),
]


def _show_version(asked: bool) -> None:
    if asked:
        print(f"millstream {__version__}")  # noqa: T201
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version and exit.", callback=_show_version, is_eager=True),
    ] = False,
) -> None:
    """Options of the command itself."""


@app.command()
def run(
    script: Script,
    format: Annotated[Format, typer.Option("--format", help="How results are printed.")] = Format.table,  # noqa: A002
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="DIR", help="Write DIR/q1.csv, ... and DIR/<sink>.csv instead of printing."
        ),
    ] = None,
    master: Annotated[
        str | None,
        typer.Option("--master", metavar="URL", help="A Spark cluster; by default Spark is embedded."),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            "--checkpoint",
            metavar="DIR",
            help="Keep what is needed to go on after an interruption; the same command then resumes.",
        ),
    ] = None,
    set_: Settings = None,
) -> None:
    """Run a script. Over files it ends by itself; otherwise Ctrl-C ends it."""
    from millstream.cli.run_command import run_script
    from millstream.runtime.script_run import RunOptions

    options = RunOptions(format.value, out, master, _settings(set_), checkpoint)
    code = run_script(_read(script), _name(script), options)
    if code:
        raise typer.Exit(code)


@app.command()
def check(script: Script) -> None:
    """Parse, resolve and plan a script without reading data or starting Spark."""
    from millstream.cli.check_command import check_script

    check_script(_read(script), _name(script))


@app.command()
def explain(script: Script) -> None:
    """Show the logical plan of every query of a script."""
    from millstream.cli.check_command import explain_script

    explain_script(_read(script), _name(script))


@app.command()
def library(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="One of them, with its script.")] = None,
) -> None:
    """The aggregates that come with Millstream: all in a line each, or the script of one."""
    from millstream.cli.library_command import show_library

    show_library(name)


@app.command()
def demo(
    name: Annotated[str, typer.Argument(help="The name of the demo: auction.")] = "auction",
    seconds: Annotated[int, typer.Option(help="How long the auction is live.", min=5)] = 45,
) -> None:
    """A bundled example, alive, on embedded Spark. There is one: auction."""
    from millstream.cli.demo_command import run_demo

    run_demo(name, seconds)


@app.command()
def version() -> None:
    """Show the version."""
    _show_version(asked=True)


def run_app() -> NoReturn:
    """Run the command; whatever goes wrong, people get a message and scripts an exit code."""
    try:
        # In this mode typer.Exit is not raised: its code is returned.
        code = app(standalone_mode=False)
    except MillstreamError as error:
        _fail(*(one.described() for one in error.all))
    except typer.Abort:
        sys.exit(130)
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:  # noqa: BLE001 (a traceback shown to a user is a bug)
        usage = getattr(error, "format_message", None)
        if usage is not None:
            _usage(error)
        _fail(
            masked(f"{type(error).__name__}: {error}"),
            hint=f"this is a mistake in Millstream; details are in {_noted()}",
        )
    sys.exit(code or 0)


def _fail(*messages: str, hint: str | None = None) -> NoReturn:
    for message in messages:
        print(f"error: {message}", file=sys.stderr)  # noqa: T201
    if hint:
        print(f"Hint: {hint}", file=sys.stderr)  # noqa: T201
    sys.exit(1)


def _usage(error: Exception) -> NoReturn:
    """A wrong option or argument: say it as the command line library does, and exit with 2 as it does."""
    error.show()  # type: ignore[attr-defined]
    sys.exit(getattr(error, "exit_code", 2))


def _noted() -> Path:
    handle, path = tempfile.mkstemp(prefix="millstream-", suffix=".log")
    with os.fdopen(handle, "w") as log:
        log.write(masked(traceback.format_exc()))
    return Path(path)


def _name(script: str) -> str:
    return "<stdin>" if script == "-" else script


def _read(script: str) -> str:
    try:
        if script == "-":
            return sys.stdin.read()
        return Path(script).read_text(encoding="utf-8")
    except OSError as error:
        raise MillstreamError(f"cannot read '{script}': {error.strerror}") from None
    except UnicodeDecodeError:
        raise MillstreamError(f"'{script}' is not a text in UTF-8") from None


def _settings(pairs: list[str] | None) -> dict[str, str]:
    settings = {}
    for pair in pairs or ():
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise typer.BadParameter(f"'{pair}' is not KEY=VALUE", param_hint="--set")
        settings[key.strip()] = value.strip()
    return settings
