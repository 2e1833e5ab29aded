"""Run the long tests, and report rows lost or doubled.

python -m soak [--kills N] [--rows N] [--hours H] [--minutes M] [--scripts N] [--bodies N] [--queries N]
               [--chains N] [--faults NAME ...] [--only NAME ...] [--seed N]
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console

from soak import chains, faults, frontend, hours, kills, queries, volume
from soak.report import Finding, show

USUAL = ("frontend", "chains", "kills", "volume", "hours", "queries")
PARTS = (*USUAL, "faults")
"""The check of the tests themselves takes hours, and runs only if it is named."""


def main() -> int:
    options = _options()
    directory = Path(tempfile.mkdtemp(prefix="soak-"))
    began = time.monotonic()
    console = Console(soft_wrap=True)

    def say(message: str) -> None:
        console.print(f"{time.monotonic() - began:8.1f} s  {message}", highlight=False, markup=False)

    say(f"seed {options.seed}, working in {directory}")
    findings: list[Finding] = []
    if "frontend" in options.only:
        findings += frontend.soak(options.scripts, options.bodies, options.seed, say)
    if "chains" in options.only:
        findings += chains.soak(options.chains, options.seed, say)
    if "kills" in options.only:
        findings += kills.soak(directory / "kills", options.kills, options.seed, say)
    if "volume" in options.only:
        findings += volume.soak(directory / "volume", options.rows, options.seed, say)
    if "hours" in options.only:
        findings += hours.soak(directory / "hours", options.hours, options.minutes, options.seed, say)
    if "queries" in options.only:
        findings += queries.soak(directory / "queries", options.queries, say)
    if "faults" in options.only:
        findings += faults.soak(directory / "faults", options.faults, say)
    show(findings)
    good = all(finding.is_good for finding in findings)
    if good:
        shutil.rmtree(directory, ignore_errors=True)
    else:
        say(f"everything is still in {directory}")
    return 0 if good else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m soak", description="Run the long tests.")
    parser.add_argument("--kills", type=int, default=50, help="random kills (default: 50)")
    parser.add_argument("--rows", type=int, default=30_000_000, help="rows (default: 30 million)")
    parser.add_argument("--hours", type=float, default=24, help="hours to replay (default: 24)")
    parser.add_argument("--minutes", type=float, default=20, help="minutes of a live stream (default: 20)")
    parser.add_argument("--scripts", type=int, default=1_000_000, help="mutated scripts (default: 1 million)")
    parser.add_argument("--bodies", type=int, default=100_000, help="random aggregates (default: 100,000)")
    parser.add_argument(
        "--chains",
        type=int,
        default=20_000,
        help="random chains and queries over relations (default: 20,000)",
    )
    parser.add_argument("--queries", type=int, default=200, help="queries in a process (default: 200)")
    parser.add_argument(
        "--faults",
        nargs="+",
        choices=faults.NAMES,
        metavar="NAME",
        default=(),
        help="faults or areas of faults (default: all)",
    )
    parser.add_argument(
        "--only", nargs="+", choices=PARTS, default=USUAL, help="some of the tests (default: all but faults)"
    )
    parser.add_argument("--seed", type=int, default=1, help="of everything random (default: 1)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
