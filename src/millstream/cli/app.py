"""Commands and their options. Heavy modules are imported by the command that needs them."""

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
To see it at work: [bold]millstream demo[/bold]. To write a script, save this as first.esl:

CREATE STREAM Bid (item INT, price DOUBLE, at TIMESTAMP)

  ORDER BY at USING csv OPTIONS (path 'bids.csv');

SELECT window_end, max(price) FROM Bid [TUMBLE 1 MINUTE];

Then [bold]millstream check first.esl[/bold] finds mistakes;
[bold]millstream run first.esl[/bold] prints results.

Documents are in docs/ beside the sources. Begin with tutorial.md, or with coming_from.md if you know
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
    """Format of printed results."""

    table = "table"
    csv = "csv"
    json = "json"


class Engine(enum.StrEnum):
    """Engine that runs a script."""

    spark = "spark"
    local = "local"


Script = Annotated[
    str, typer.Argument(metavar="SCRIPT", help="File with an ESL script; - is standard input.")
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Setting of Spark or Millstream; may be given several times."
    ),
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
    """Take the options that stand before a command."""


@app.command()
def run(
    script: Script,
    format: Annotated[Format, typer.Option("--format", help="Format of the results.")] = Format.table,  # noqa: A002
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="DIR",
            help="Write results to files DIR/q1.csv, DIR/q2.csv, DIR/<sink>.csv instead of printing them.",
        ),
    ] = None,
    master: Annotated[
        str | None,
        typer.Option(
            "--master",
            metavar="URL",
            help="Spark cluster to run on; by default Spark runs inside this process.",
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            "--checkpoint",
            metavar="DIR",
            help="Save progress in DIR, so that the same command continues after an interruption.",
        ),
    ] = None,
    set_: Settings = None,
    engine: Annotated[
        Engine,
        typer.Option(
            "--engine",
            help="Engine to run on. local is one process without Spark, for small files and a first look.",
        ),
    ] = Engine.spark,
) -> None:
    """Run a script: print the results of its queries.

    A script over files ends by itself. A script over Kafka or a port prints rows as they come, until Ctrl-C.
    """
    if engine is Engine.local:
        from millstream.cli.local_command import run_script_locally

        for option, given in (("--master", master), ("--checkpoint", checkpoint), ("--set", set_)):
            if given:
                raise MillstreamError(
                    f"{option} is for Spark, which the local engine does not start",
                    hint=f"leave out {option}, or --engine local",
                )
        if code := run_script_locally(_read(script), _name(script), format.value, out):
            raise typer.Exit(code)
        return
    from millstream.cli.run_command import run_script
    from millstream.runtime.script_run import RunOptions

    options = RunOptions(format.value, out, master, _settings(set_), checkpoint)
    code = run_script(_read(script), _name(script), options)
    if code:
        raise typer.Exit(code)


@app.command()
def check(script: Script) -> None:
    """Find the mistakes of a script, without reading data or starting Spark."""
    from millstream.cli.check_command import check_script

    check_script(_read(script), _name(script))


@app.command()
def explain(
    script: Script,
    physical: Annotated[bool, typer.Option(help="Print physical plans: stages, kernels, columns.")] = False,
) -> None:
    """Print the plan of every query of a script, without starting Spark."""
    from millstream.cli.check_command import explain_script

    explain_script(_read(script), _name(script), physical=physical)


@app.command()
def library(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Aggregate whose script is printed.")
    ] = None,
) -> None:
    """List the aggregates that come with Millstream, or print the script of one."""
    from millstream.cli.library_command import show_library

    show_library(name)


@app.command()
def demo(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Demo to play: auction, stocks or traffic.")
    ] = "auction",
    seconds: Annotated[int, typer.Option(help="Seconds to play after the first rows.", min=5)] = 30,
    list_: Annotated[bool, typer.Option("--list", help="List the demos and exit.")] = False,
) -> None:
    """Play an example for about a minute: queries beside their results.

    Spark runs on this machine, and the streams are generated. Ctrl-C ends a demo sooner.
    """
    from millstream.cli.demo_command import list_demos, run_demo

    if list_:
        list_demos()
    else:
        run_demo(name, seconds)


@app.command()
def version() -> None:
    """Show the version."""
    _show_version(asked=True)


def run_app() -> NoReturn:
    """Run the command, and turn every exception into a message and an exit code."""
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
    """Report a wrong option or argument as the command line library does, with exit code 2."""
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
