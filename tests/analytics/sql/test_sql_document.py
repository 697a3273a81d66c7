"""Test that docs/sql.md describes the views, functions and limits as they are."""

import re
from pathlib import Path

from analytics.jobs import sql_query
from analytics.requests.parameters import SQL_WINDOW
from analytics.sql.functions import GROUPS
from analytics.sql.statement import MAX_LENGTH, MAX_WILDCARDS
from analytics.sql.views import SCHEMA_VERSION, VIEWS

DOCUMENT = (Path(__file__).parents[3] / "docs/sql.md").read_text()


def test_the_document_has_every_view_with_its_columns_types_and_meanings():
    for view in VIEWS.values():
        part = DOCUMENT.partition(f"### `{view.name}`\n")[2].partition("\n#")[0]
        assert f"A row is {view.row}." in part
        rows = re.findall(r"^\| `(\w+)` \| (.+?) \| (.+) \|$", part, re.MULTILINE)
        assert rows == [(each.name, each.type_in_words, each.meaning) for each in view.columns]
    assert re.findall(r"^### `(\w+)`$", DOCUMENT, re.MULTILINE) == list(VIEWS)
    assert f"Version {SCHEMA_VERSION} of the views" in DOCUMENT


def test_the_document_has_every_function():
    for group, functions in GROUPS.items():
        assert f"| {group} | {', '.join(f'`{each.name}`' for each in functions)} |" in DOCUMENT


def test_the_document_has_the_limits():
    assert f"| time range | {sql_query.MAX_DAYS} days |" in DOCUMENT
    assert SQL_WINDOW.is_valid(f"{sql_query.MAX_DAYS}d")
    assert not SQL_WINDOW.is_valid(f"{sql_query.MAX_DAYS + 1}d")
    assert f"| rows of a result | {sql_query.MAX_ROWS:,};" in DOCUMENT
    assert f"| size of a result | {sql_query.MAX_BYTES // 1024**2} MiB" in DOCUMENT
    assert f"| columns of a result | {sql_query.MAX_COLUMNS} |" in DOCUMENT
    assert f"| statement | {MAX_LENGTH:,} characters |" in DOCUMENT
    assert f"at most {MAX_WILDCARDS} `%`" in DOCUMENT
