"""The maps of the tree, in CONTRIBUTING.md and in docs, against the tree."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MOST = 25
"""Modules in a folder; what has more is divided by concept."""


def packages() -> set[str]:
    """Folders of modules, as the map writes them: below ``src/millstream``, or at the top."""
    source = ROOT / "src" / "millstream"
    found = {path.parent.relative_to(source) for path in source.rglob("*.py")} - {Path()}
    return {str(folder) for folder in found} | {
        str(path.parent.relative_to(ROOT)) for path in (ROOT / "oracle").rglob("*.py")
    }


def mapped() -> list[str]:
    """Folders that the map in CONTRIBUTING.md lists, by their indentation."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    block = text.partition("## Where things are")[2].partition("```text diagram\n")[2].partition("```")[0]
    found: list[str] = []
    above: list[tuple[int, str]] = []
    for line in block.splitlines():
        match = re.match(r"( +)([a-z_/]+)/(?: |$)", line)
        assert match, f"a line of the map without a folder: {line}"
        indent = len(match[1])
        while above and above[-1][0] >= indent:
            above.pop()
        path = "/".join([*(name for _, name in above), match[2]])
        above.append((indent, match[2]))
        found.append(path.removeprefix("src/millstream").removeprefix("/"))
    return [path for path in found if path]


def test_the_map_of_packages_has_every_package_once() -> None:
    assert sorted(mapped()) == sorted(packages())


def test_no_folder_has_too_many_modules() -> None:
    for package in packages():
        folder = ROOT / package if package.startswith("oracle") else ROOT / "src" / "millstream" / package
        assert len([path for path in folder.glob("*.py") if path.name != "__init__.py"]) <= MOST, package


@pytest.mark.parametrize(
    "document", ["docs/glossary.md", "docs/architecture.md", "docs/contributing.md", "CONTRIBUTING.md"]
)
def test_files_that_documents_name_exist(document: str) -> None:
    text = (ROOT / document).read_text(encoding="utf-8")
    for path in re.findall(r"`((?:[a-z_]+/)+[a-z_]+\.(?:py|txt))`", text):
        assert (ROOT / "src" / "millstream" / path).exists() or (ROOT / path).exists(), path


def test_no_two_lines_of_the_glossary_define_one_word() -> None:
    text = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    words = [line.split("|")[1].strip() for line in text.splitlines() if line.startswith("| ")]
    words = [word for word in words if word not in ("Millstream", "---")]
    assert len(words) == len(set(words)) > 50
