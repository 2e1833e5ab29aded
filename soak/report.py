"""Findings of a long test, as a line of a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table


@dataclass(frozen=True)
class Finding:
    """A test: its actions, its duration, rows lost or doubled, and other problems."""

    name: str
    size: str
    seconds: float
    lost: int = 0
    doubled: int = 0
    detail: str = ""
    wrong: str = ""

    @property
    def is_good(self) -> bool:
        return not (self.lost or self.doubled or self.wrong)


def differences(found: Iterable[Hashable], should: Iterable[Hashable]) -> tuple[int, int]:
    """Return the numbers of missing and of surplus rows; a wrong row is both."""
    has, wants = Counter(found), Counter(should)
    return (wants - has).total(), (has - wants).total()


def show(findings: Iterable[Finding]) -> None:
    table = Table(title="Soak", title_justify="left")
    for column in ("test", "size", "time", "lost", "doubled", "detail", ""):
        table.add_column(column, justify="right" if column in ("time", "lost", "doubled") else "left")
    for finding in findings:
        table.add_row(
            finding.name,
            finding.size,
            f"{finding.seconds:,.0f} s",
            str(finding.lost),
            str(finding.doubled),
            finding.detail,
            "[green]ok[/]" if finding.is_good else f"[bold red]{finding.wrong or 'wrong'}[/]",
        )
    Console(width=None if Console().is_terminal else 140).print(table)
