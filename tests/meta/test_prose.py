"""Plain technical English: rules for docstrings, comments and messages that a program can check."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

FOLDERS = ("benchmarks", "oracle", "soak", "src", "tests")

OPENING = re.compile(
    r"(What|Whatever|Who|Whose|Whom|Whoever|How|Of|Where|When|Which|Whichever|Why|The same|There|That|Those|"
    r"These|Such|As|Something|Nothing|Everything|It|They|So|Also)\b"
)
"""First words of a docstring that name no thing and no action."""

PERSON = re.compile(
    r"\b(somebody|someone|nobody|whoever|whomever|anybody|anyone|everybody|everyone)\b", re.IGNORECASE
)

Documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of all docstrings, those of test functions excepted."""
    for node in ast.walk(tree):
        if not isinstance(node, Documented) or getattr(node, "name", "").startswith("test_"):
            continue
        if text := ast.get_docstring(node):
            yield node.body[0].lineno, text


def comments(source: str) -> Iterator[tuple[int, str]]:
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def strings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def violations(source: str, *, messages: bool = True) -> Iterator[str]:
    """Yield the violations of a module; without ``messages``, strings that are not docstrings are skipped."""
    tree = ast.parse(source)
    for line, text in docstrings(tree):
        if opening := OPENING.match(text):
            yield f"{line}: docstring begins with {opening[0]!r}"
    texts = strings(tree) if messages else docstrings(tree)
    for line, text in sorted({*comments(source), *texts}):
        if person := PERSON.search(text):
            yield f"{line}: {person[0]!r} is a word for people"


@pytest.mark.parametrize("folder", FOLDERS)
def test_prose(folder: str) -> None:
    paths = list((ROOT / folder).rglob("*.py"))
    assert paths
    assert not [
        f"{path.relative_to(ROOT)}:{violation}"
        for path in sorted(paths)
        if path != Path(__file__)
        for violation in violations(path.read_text(), messages=folder != "tests")
    ]


def test_rules_find_what_they_forbid() -> None:
    source = '"""Where rows are kept."""\n# nobody reads this\nraise ValueError("somebody else holds it")\n'
    assert list(violations(source)) == [
        "1: docstring begins with 'Where'",
        "2: 'nobody' is a word for people",
        "3: 'somebody' is a word for people",
    ]
