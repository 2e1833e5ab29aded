"""Command line: ``millstream run``, ``check``, ``explain``, ``library``, ``demo``."""

from __future__ import annotations


def main() -> None:
    """Run the command ``millstream``."""
    from millstream.cli.app import run_app

    run_app()
