"""Links and file names in the documentation lead to something."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parent.parent
DOCUMENTS = [PROJECT / "README.md", PROJECT / "CONTRIBUTING.md", *sorted((PROJECT / "docs").rglob("*.md"))]
#: Folders that the file names of a document may be relative to.
BASES = ("", "brokerapp", "brokerapp/nodes", "brokerapp/network", "brokerapp/cluster", "brokerapp/store", "console")
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_FILE = re.compile(r"`([\w./]+/[\w.]+\.(?:py|lua|html|js|css|xml|md))`")
_MODULE = re.compile(r"`([a-z_]+\.(?:py|lua))`")
#: Names with the ending of a module that are none of ours.
_OTHERS = frozenset({"stomp.py"})
#: Decisions say what was so when they were made.
_HISTORY = PROJECT / "docs/decisions"


def names(documents: list[Path]) -> list[str]:
    return [str(each.relative_to(PROJECT)) for each in documents]


def anchors(document: Path) -> set[str]:
    """The anchors of a document's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", document.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in headings}


@pytest.mark.parametrize("name", names(DOCUMENTS))
def test_every_link_leads_to_a_file_and_a_heading_that_exist(name):
    document, broken = PROJECT / name, []
    for link in _LINK.findall(document.read_text()):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = document.parent / path if path else document
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


@pytest.mark.parametrize("name", names([each for each in DOCUMENTS if not each.is_relative_to(_HISTORY)]))
def test_every_file_that_a_document_names_exists(name):
    named = _FILE.findall((PROJECT / name).read_text())
    assert [each for each in named if not any((PROJECT / base / each).exists() for base in BASES)] == []


@pytest.mark.parametrize("name", names([each for each in DOCUMENTS if not each.is_relative_to(_HISTORY)]))
def test_every_module_that_a_document_names_without_its_folder_exists(name):
    tracked = subprocess.run(
        ["git", "ls-files"], cwd=PROJECT, capture_output=True, text=True, check=True
    ).stdout.split()
    modules = {Path(each).name for each in tracked} | _OTHERS
    assert [each for each in _MODULE.findall((PROJECT / name).read_text()) if each not in modules] == []


def test_the_index_names_every_page():
    index = (PROJECT / "docs/README.md").read_text()
    tracked = subprocess.run(
        ["git", "ls-files", "docs/*.md", "docs/guide/*.md", "docs/internals/*.md"],
        cwd=PROJECT, capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    pages = [each.removeprefix("docs/") for each in tracked if "decisions/" not in each]
    assert [each for each in pages if each not in ("README.md", "guide/README.md") and f"({each})" not in index] == []
