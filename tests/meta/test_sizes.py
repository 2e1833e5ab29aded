"""Sizes: modules with one idea, functions of one screen. An exception has its reason beside it."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
MODULES = [path for folder in ("src", "oracle") for path in sorted((ROOT / folder).rglob("*.py"))]

MOST_LINES, MOST_LINES_OF_FUNCTION = 500, 60
LONGER = {
    "src/millstream/kernels/relational/fifo_groups.py:_laid": "one compiled loop over all groups",
    "src/millstream/kernels/relational/outer_join.py:_count": "one compiled loop over all events",
    "src/millstream/kernels/relational/semi_anti_join.py:_match": "one compiled loop over all events",
    "src/millstream/kernels/windows/pane_sweep.py:_sweep": "one compiled loop over all visits",
    "src/millstream/analysis/queries/aggregate_calls.py:aggregate_call": "one message for each rule",
}


def functions(path: Path) -> list[tuple[str, int]]:
    nodes = ast.walk(ast.parse(path.read_text()))
    found = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    place = path.relative_to(ROOT)
    return [(f"{place}:{node.name}", (node.end_lineno or 0) - node.lineno + 1) for node in found]


def test_no_module_is_long() -> None:
    assert not [str(path) for path in MODULES if len(path.read_text().splitlines()) > MOST_LINES]


def test_no_function_is_long_but_those_with_a_reason() -> None:
    long = {name for path in MODULES for name, lines in functions(path) if lines > MOST_LINES_OF_FUNCTION}
    assert long == set(LONGER)
