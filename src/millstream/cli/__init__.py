"""What people type: ``millstream run``, ``check``, ``explain``, ``demo``."""

from __future__ import annotations


def main() -> None:
    """The entry point of the command."""
    from millstream.cli.app import run_app

    run_app()
