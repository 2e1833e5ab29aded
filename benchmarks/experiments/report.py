"""Run the experiments one after the other, and make one page of all that have been run.

Each experiment leaves a record when it is finished. So a run that was interrupted goes on with --resume, and
one experiment can be repeated with --only while the others stay in the page as they were measured.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import signal
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.engine.contract import ROOT
from benchmarks.engine.environment import environment
from benchmarks.experiments.section import Figures, Section, Size, verdict


@dataclass(frozen=True)
class Page:
    """Experiments of one package: modules with ROWS, REPEATS and measure(size, directory), which returns a
    Section; pictures go to the directory."""

    name: str
    title: str
    experiments: tuple[str, ...]
    directories: Mapping[str, Path] = field(default_factory=dict)
    """Data that is not made here, by the name of its option: where it is looked for otherwise."""


def main(page: Page, argv: list[str]) -> int:
    options = _options(page, argv)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # As after Ctrl-C, started processes are ended first: peers are not in the process group of this one.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))
    console = Console(highlight=False)
    directory = options.out / page.name
    directory.mkdir(parents=True, exist_ok=True)
    for name in options.only:
        experiment = importlib.import_module(f"benchmarks.{page.name}.{name}")
        rows, repeats = options.rows or experiment.ROWS, options.repeats or experiment.REPEATS
        asked = {name: getattr(options, name) for name in page.directories}
        size = Size(rows, repeats, {name: path for name, path in asked.items() if path.is_dir()})
        record = directory / f"{name}.json"
        if options.resume and _is_done(record, size):
            console.print(f"{name}: done before", style="dim")
            continue
        record.unlink(missing_ok=True)
        start = time.perf_counter()
        section = experiment.measure(size, directory)
        _write(record, section, size, time.perf_counter() - start)
        _show(section, console)
        # After each, so that there is a page whenever this is interrupted.
        console.print(f"wrote {write_page(page, options.out)}\n", soft_wrap=True)
    return 0


def _is_done(record: Path, size: Size) -> bool:
    if not record.exists():
        return False
    settings = json.loads(record.read_text())["settings"]
    return bool(settings == _settings(size))


def _settings(size: Size) -> dict[str, Any]:
    found = {"found": sorted(size.directories)} if size.directories else {}
    return {"rows": size.rows, "repeats": size.repeats, **found}


def _write(record: Path, section: Section, size: Size, seconds: float) -> None:
    data = {
        "settings": _settings(size),
        "seconds": round(seconds, 1),
        "finished": time.strftime("%Y-%m-%d %H:%M", time.gmtime()),
        "environment": environment(),
        "section": section.as_data(),
    }
    # Whole or not at all: a record says that the experiment is finished.
    unfinished = record.with_suffix(".unfinished")
    unfinished.write_text(json.dumps(data, indent=1) + "\n")
    unfinished.replace(record)


def _show(section: Section, console: Console) -> None:
    console.print(f"\n{section.title}", style="bold", markup=False, soft_wrap=True)
    for figures in section.tables:
        heading, *rows = figures.rows
        table = Table(title=figures.title, title_justify="left")
        for place, text in enumerate(heading):
            table.add_column(text, justify="right" if place else "left")
        for row in rows:
            table.add_row(*row)
        console.print(table)
    for claim in section.claims:
        console.print(f"{claim.text}: {claim.measured} ({verdict(claim)})", markup=False, soft_wrap=True)


def write_page(page: Page, out: Path) -> Path:
    """The page of all experiments that have a record."""
    records = [out / page.name / f"{name}.json" for name in page.experiments]
    found = {record.stem: json.loads(record.read_text()) for record in records if record.exists()}
    sections = {name: Section.from_data(data["section"]) for name, data in found.items()}
    parts = [
        f"# {page.title}",
        "What was claimed beside what was measured. Times are medians, ratios are within one run.",
        _claims(sections),
    ]
    for name, section in sections.items():
        parts += [f"## {section.title}", section.about, _measured(found[name])]
        parts += [f"![{section.title}]({page.name}/{picture})" for picture in section.pictures]
        for figures in section.tables:
            parts += [figures.title, _markdown(figures)]
    parts += ["## Environment", _environments(found)]
    path = out / f"{page.name}.md"
    path.write_text("\n\n".join(part for part in parts if part) + "\n")
    return path


def _claims(sections: dict[str, Section]) -> str:
    rows = [["experiment", "claim", "measured", "holds"]]
    for name, section in sections.items():
        rows += [[name, claim.text, claim.measured, verdict(claim)] for claim in section.claims]
    return _markdown(Figures("", rows), left=4)


def _measured(data: dict[str, Any]) -> str:
    rows, repeats = data["settings"]["rows"], data["settings"]["repeats"]
    runs = f"medians of {repeats} runs" if repeats > 1 else "one run each"
    return f"{rows:,} rows, {runs}; finished {data['finished']} UTC, after {data['seconds']:,.0f} s."


def _environments(found: dict[str, Any]) -> str:
    """Nearly always one; experiments that were measured elsewhere say so."""
    seen: dict[str, list[str]] = {}
    for name, data in found.items():
        text = "\n".join(f"- {title}: {value}" for title, value in data["environment"].items())
        seen.setdefault(text, []).append(name)
    if len(seen) < 2:
        return "".join(seen)
    return "\n\n".join(f"{', '.join(names)}:\n\n{text}" for text, names in seen.items())


def _markdown(figures: Figures, left: int = 1) -> str:
    heading, *rows = figures.rows
    ruler = ["---" if place < left else "---:" for place in range(len(heading))]
    return "\n".join(f"| {' | '.join(row)} |" for row in (heading, ruler, *rows))


def _options(page: Page, argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks {page.name}", description=page.title)
    add = parser.add_argument
    names = list(page.experiments)
    add("--only", nargs="+", choices=names, default=names, help="these (default: all)")
    add("--rows", type=int, help="rows of the streams (default: each experiment's own)")
    add("--repeats", type=int, help="runs of each case, in turn (default: each experiment's own)")
    for name, usual in page.directories.items():
        add(f"--{name}", type=Path, default=usual, metavar="DIR", help=f"where {name} are (default: {usual})")
    add("--resume", action="store_true", help="skip what is finished already, with the same rows and repeats")
    add("--out", type=Path, default=ROOT / "artifacts" / "benchmarks", help="where the report goes")
    return parser.parse_args(argv)
