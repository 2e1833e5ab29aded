"""Draw docs/demo.svg: play the auction demo, and take its screen near the end."""

from __future__ import annotations

import html
import io
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from millstream.cli.demo_command import run_demo
from millstream.cli.terminal_views import DemoRun, DemoScreen

WIDTH, HEIGHT = 120, 50
SECONDS = 40
PICTURE = Path(__file__).parents[1] / "docs" / "demo.svg"
CELL = 12.2
"""Width of a character in rich's pictures."""
SPACE = "\N{NO-BREAK SPACE}"


def draw(screen: DemoScreen) -> str:
    """Return a screen as SVG, without the fonts that it would load from elsewhere."""
    console = Console(
        file=io.StringIO(),
        record=True,
        width=WIDTH,
        height=HEIGHT,
        force_terminal=True,
        color_system="truecolor",
        highlight=False,
    )
    console.print(screen)
    svg = console.export_svg(title="make demo", unique_id="demo")
    svg = re.sub(r"\s*@font-face \{.*?\}", "", svg, flags=re.DOTALL)
    svg = re.sub(r'x="([\d.]+)" y="([\d.]+)" textLength="[\d.]+"([^>]*)>([^<]*)<', trim, svg)
    return "\n".join(line.rstrip() for line in svg.splitlines() if line.strip()) + "\n"


def trim(found: re.Match[str]) -> str:
    """Move a text to its first letter: not every program draws the spaces before it."""
    text = html.unescape(found[4])
    inner = text.strip(SPACE)
    x = float(found[1]) + CELL * (len(text) - len(text.lstrip(SPACE)))
    shown = html.escape(inner, quote=False).replace(SPACE, "&#160;")
    return f'x="{x:.1f}" y="{found[2]}" textLength="{CELL * len(inner):.1f}"{found[3]}>{shown}<'


@contextmanager
def taken(run: DemoRun) -> Iterator[Callable[[], None]]:
    """Take the last screen of the demo while it is live."""
    screen = DemoScreen(run)
    last = ""

    def refresh() -> None:
        nonlocal last
        drawn = draw(screen)
        if run.step == "live":
            last = drawn

    yield refresh
    PICTURE.write_text(last, encoding="utf-8")


if __name__ == "__main__":
    run_demo("auction", SECONDS, taken)
