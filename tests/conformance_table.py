"""Write the table of docs/conformance.md: each scenario with the tests that prove it, from their marks.

`python -m tests.conformance_table` writes it.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.catalogue import CATALOGUE, NOT_TESTED

TESTS = Path(__file__).resolve().parent
PAGE = TESTS.parent / "docs" / "conformance.md"
BEGIN, END = "<!-- scenarios: made by python -m tests.conformance_table -->", "<!-- end of scenarios -->"
#: Tests named in a row; the rest are counted.
MOST_NAMED = 3


@cache
def marked() -> dict[str, list[str]]:
    """Row -> `file: test` of all that bear its mark."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted(TESTS.rglob("test_*.py")):
        for row, test in _marks(ast.parse(path.read_text())):
            found[row].append(f"{path.relative_to(TESTS)}: {test}")
    return found


def _marks(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for decorator in node.decorator_list:
                for row in _rows(decorator):
                    yield row, node.name
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(getattr(each, "id", "") == "pytestmark" for each in node.targets):
            for call in ast.walk(node.value):
                for row in _rows(call):
                    yield row, "(all)"


def _rows(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "scenario":
        return [each.value for each in node.args if isinstance(each, ast.Constant)]
    return []


def table() -> str:
    """The part of the page that is made."""
    found, lines = marked(), [BEGIN]
    for part, rows in CATALOGUE.items():
        lines += ["", f"### {part}", "", "| | scenario | test |", "|---|---|---|"]
        lines += [f"| {row} | {words} | {_proof(row, found)} |" for row, words in rows.items()]
    return "\n".join([*lines, "", END])


def _proof(row: str, found: dict[str, list[str]]) -> str:
    tests = found.get(row, [])
    if not tests:
        return NOT_TESTED.get(row, "")
    more = f" and {len(tests) - MOST_NAMED} more" if len(tests) > MOST_NAMED else ""
    return "<br>".join(f"`{each}`" for each in tests[:MOST_NAMED]) + more


def page() -> str:
    """The whole page with the table as it should be."""
    before, _, rest = PAGE.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + table() + after


if __name__ == "__main__":
    PAGE.write_text(page())
