"""Run benchmarks: all the short ones, those that are named, or one of the long ones.

python -m benchmarks [name ...] [--quick]
python -m benchmarks engine [--rows N] [--only NAME ...] [--check] [--help]    beside its peers: hours
python -m benchmarks revisions REVISION [--rows N] [--only NAME ...]           beside another revision
python -m benchmarks growth [--only NAME ...] [--help]                         what should not grow
python -m benchmarks slides [--rows N] [--only NAME ...] [--help]              windows that slide
python -m benchmarks windows [--rows N] [--only NAME ...] [--resume] [--help]  the papers' experiments
python -m benchmarks aggregates [--rows N] [--only NAME ...] [--resume]        aggregates of the user's
python -m benchmarks patterns [--rows N] [--only NAME ...] [--resume] [--stocks DIR]  sequence patterns
python -m benchmarks relations [--rows N] [--only NAME ...] [--resume]         joins, DISTINCT, aggregates
"""

from __future__ import annotations

import argparse
import sys

from benchmarks import csv_to_out, start_up
from benchmarks.engine.contract import ROOT
from benchmarks.experiments import report as experiments
from benchmarks.experiments.report import Page
from benchmarks.report import environment, show

PAGES = (
    Page(
        "windows",
        "Windows: the papers' experiments, growth and peers",
        ("cost", "band", "blocks", "slides", "kinds", "memory", "ratio", "peers"),
    ),
    Page(
        "aggregates",
        "User-defined aggregates: the paper's experiments, built-ins and peers",
        ("sizes", "bidders", "slides", "time_slides", "whole", "compiling"),
    ),
    Page(
        "patterns",
        "Sequence patterns: questions asked, peers, memory, and six stars",
        ("search", "several", "peer", "memory", "large"),
        {"stocks": ROOT.parent / "shared" / "data" / "stocks"},
    ),
    Page(
        "relations",
        "Results maintained at every instant: the paper's experiments, state, and a join beside peers",
        ("sliding", "counted", "removal", "landmark", "state", "peers"),
    ),
)
BENCHMARKS = {"start_up": start_up, "csv_to_out": csv_to_out}


def main() -> None:
    if sys.argv[1:2] == ["engine"]:
        from benchmarks.engine import compare

        sys.exit(compare.main(sys.argv[2:]))
    if sys.argv[1:2] == ["revisions"]:
        from benchmarks import revisions

        sys.exit(revisions.main(sys.argv[2:]))
    if sys.argv[1:2] == ["growth"]:
        from benchmarks.growth import report

        sys.exit(report.main(sys.argv[2:]))
    if sys.argv[1:2] == ["slides"]:
        from benchmarks.slides import report as slides

        sys.exit(slides.main(sys.argv[2:]))
    for page in PAGES:
        if sys.argv[1:2] == [page.name]:
            sys.exit(experiments.main(page, sys.argv[2:]))
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measure Millstream.",
        epilog="The long ones: python -m benchmarks engine --help, and revisions, growth, slides, windows, "
        "aggregates, patterns, relations",
    )
    parser.add_argument("names", nargs="*", choices=[[], *BENCHMARKS], help="which ones (default: all)")
    parser.add_argument("--quick", action="store_true", help="a tenth of the size, to see that they work")
    options = parser.parse_args()
    print(environment(), flush=True)
    for name in options.names or BENCHMARKS:
        module = BENCHMARKS[name]
        title = (module.__doc__ or name).strip().splitlines()[0]
        print(f"\n{name}: {title}", flush=True)
        show(module.measure(quick=options.quick))


if __name__ == "__main__":
    main()
