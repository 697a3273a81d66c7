"""The scenario catalogue, the marks of the tests and the page that shows both agree."""

from tests.catalogue import CATALOGUE, NOT_TESTED
from tests.conformance_table import PAGE, marked, page

ROWS = {row for rows in CATALOGUE.values() for row in rows}


def test_every_mark_names_a_row_of_the_catalogue():
    assert set(marked()) - ROWS == set()


def test_every_row_has_a_test_or_a_reason_to_have_none():
    tested = set(marked())
    assert sorted(ROWS - tested - set(NOT_TESTED)) == []
    assert sorted(tested & set(NOT_TESTED)) == []


def test_the_page_shows_the_rows_with_their_tests():
    assert PAGE.read_text() == page(), "run: python -m tests.conformance_table"
