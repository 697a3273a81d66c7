"""Links and file names in the documentation lead to something, and the table of measures has them all."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from analytics.jobs.common import tables
from analytics.requests.catalogue import ANALYSES
from analytics.rollups.counters import NUMBERS
from analytics.rollups.queries import ConsumersSince
from console.exporters.prometheus.exposition import METRICS
from console.objectives.api import AttainmentOut

PROJECT = Path(__file__).resolve().parent.parent
DOCUMENTS = [
    *(PROJECT / f"{name}.md" for name in ("README", "CONTRIBUTING", "SECURITY")),
    *sorted((PROJECT / "docs").rglob("*.md")),
]
#: Folders that the file names of a document may be relative to.
BASES = ("", "brokerapp", "brokerapp/nodes", "brokerapp/network", "brokerapp/cluster", "brokerapp/store", "console")
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_FILE = re.compile(r"`([\w./]+/[\w.]+\.(?:py|lua|html|js|css|xml|md))`")
_MODULE = re.compile(r"`([a-z_]+\.(?:py|lua))`")
_PAGE = re.compile(r"\bdocs/[\w/-]+\.md")
#: Folders of code.
CODE = ("brokerapp", "console", "analytics")
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


def texts_of_users() -> list[Path]:
    """Templates, and modules, whose texts and errors name pages of the documentation."""
    folders = [(PROJECT / "templates", "*.html"), *((PROJECT / each, "*.py") for each in CODE)]
    return [file for folder, pattern in folders for file in sorted(folder.rglob(pattern))]


def test_every_page_of_the_documentation_that_a_template_or_a_module_names_exists():
    named = {(name, file) for file in texts_of_users() for name in _PAGE.findall(file.read_text())}
    assert len(named) > 10, "the pattern finds them"
    assert sorted(f"{file.relative_to(PROJECT)}: {name}" for name, file in named if not (PROJECT / name).exists()) == []


def test_the_index_names_every_page():
    index = (PROJECT / "docs/README.md").read_text()
    tracked = subprocess.run(
        ["git", "ls-files", "docs/*.md", "docs/guide/*.md", "docs/internals/*.md"],
        cwd=PROJECT, capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    pages = [each.removeprefix("docs/") for each in tracked if "decisions/" not in each]
    assert [each for each in pages if each not in ("README.md", "guide/README.md") and f"({each})" not in index] == []


def test_the_configuration_in_the_readme_is_read_without_a_remark(tmp_path):
    [example] = re.findall(r"^```xml\n(.+?)^```$", (PROJECT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    file = tmp_path / "activemq.xml"
    file.write_text(example)
    command = [sys.executable, PROJECT / "manage.py", "runbroker", "--print-config", "--config", file]
    done = subprocess.run([*command, "--data", tmp_path / "data"], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert all(each in done.stdout for each in ("stomp://127.0.0.1:61613", "tcp://127.0.0.1:61616"))


# -- the table of measures

_MEASURES = PROJECT / "docs/data.md"
_MEASURE = re.compile(r"`([a-z-]+\.\w+)`")
#: Columns that say which slot a row is of.
_KEYS = frozenset({"slot", "time"})
#: Fields of a measured objective that say what it is about, or judge a measure.
_ABOUT_OBJECTIVE = frozenset({"queues", "subscriptions", "is_met"})


def documented_measures() -> list[str]:
    """The names in the first cell of each row of the table."""
    section = _MEASURES.read_text().partition("\n## Measures\n")[2].partition("\n## ")[0]
    rows = [line.split(" | ")[0] for line in section.splitlines() if line.startswith("| `")]
    return [name for row in rows for name in _MEASURE.findall(row)]


def columns_of(module: str) -> set[str]:
    """The columns with a unit that a job declares, or takes from those that jobs share."""
    tree = ast.parse((PROJECT / f"{module.replace('.', '/')}.py").read_text())
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "ResultColumn":
            name, _, unit, *_ = (*(getattr(each, "value", None) for each in node.args), "", "")
            found |= {name} if isinstance(name, str) and unit else set()
    imported = {
        alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names
    }  # fmt: skip
    if "latency_tables" in imported:
        found |= columns_of("analytics.jobs.common.latency_tables")
    found |= {tables.ACKED.name} if "ACKED" in imported else set()
    return found | ({each.name for each in tables.LATENCIES} if "LATENCIES" in imported else set())


def measures_in_code() -> set[str]:
    """Every measure of analyses, rollups, objectives and live counters."""
    modules = {kind: each.module for kind, each in ANALYSES.items()} | {"whatif": "analytics.whatif.report"}
    of_analyses = {f"{kind}.{name}" for kind, module in modules.items() for name in columns_of(module) - _KEYS}
    of_consumers = (each.name for each in fields(ConsumersSince))
    rollups = {
        f"rollup.{name}" for name in (*NUMBERS, "latency", "depth", "most", "enqueued", "dequeued", *of_consumers)
    }
    objectives = {f"objective.{name}" for name in AttainmentOut.model_fields.keys() - _ABOUT_OBJECTIVE}
    return of_analyses | rollups | objectives | {f"live.{each.attribute}" for each in METRICS}


def test_the_table_of_measures_has_each_measure_of_the_code_and_no_other():
    documented = set(documented_measures())
    assert (sorted(measures_in_code() - documented), sorted(documented - measures_in_code())) == ([], [])


def test_each_row_of_the_table_of_measures_is_complete():
    section = _MEASURES.read_text().partition("\n## Measures\n")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| ")]
    assert len(rows) > 50
    assert [row for row in rows if row.count(" | ") != 5 or not all(map(str.strip, row.strip("| ").split(" | ")))] == []
