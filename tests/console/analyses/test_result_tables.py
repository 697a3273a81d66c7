"""Test tables of results: sorted and paged by the URL, with links to live pages."""

import pyarrow as pa
import pytest

from analytics.requests.request import TimeWindow
from analytics.results import storage
from analytics.results.storage import JobResult, ResultColumn, ResultTable
from console.analyses import result_tables
from console.ui.formatting import number_format

WINDOW = TimeWindow(1_700_000_000_000_000, 1_700_003_600_000_000)
COLUMNS = (
    ResultColumn("destination", "Destination", about="destination"), ResultColumn("n", "Count", "messages"),
    ResultColumn("client", "Consumer", about="client"), ResultColumn("id", "Message", about="message"),
)  # fmt: skip


@pytest.fixture
def stored(tmp_path):
    rows = 60
    table = pa.table(
        {
            "destination": [f"queue://q{number}" for number in range(rows)],
            "n": [None, *range(1, rows)],
            "client": ["billing & co"] * rows,
            "id": ["ID:a-1"] * rows,
        }
    )
    found = JobResult(
        "Found.", rows, (), (ResultTable("t", "T", COLUMNS, table), ResultTable("u", "U", COLUMNS[:1], table))
    )
    return storage.save_result(tmp_path, "run", found, window=WINDOW, fresh_until_us=None, seconds=1)


def test_rows_are_sorted_over_the_whole_table_and_shown_a_page_at_a_time(stored, tmp_path):
    first, other = result_tables.result_pages(stored, tmp_path / "run", {"t0.sort": "-n", "t1.page": "3"})
    assert [row[1].text for row in first.rows[:2]] == ["59", "58"]
    assert (first.total, first.first, first.last, first.previous) == (60, 1, result_tables.SIZE, "")
    assert first.next == "?t0.sort=-n&t1.page=3&t0.page=2#t0"
    assert [head.sort for head in first.heads] == ["none", "descending", "none", "none"]
    assert first.heads[1].url == "?t0.sort=n&t1.page=3#t0"
    assert (other.first, other.last, other.next) == (51, 60, "")
    [last, _] = result_tables.result_pages(stored, tmp_path / "run", {"t0.sort": "-n", "t0.page": "3"})
    assert last.rows[-1][1].text == "–"  # what has no value comes last


def test_names_lead_to_live_pages_at_the_same_window(stored, tmp_path):
    [page, _] = result_tables.result_pages(stored, tmp_path / "run", {})
    queue, count, client, message = page.rows[1]
    assert (queue.text, queue.url) == ("q1", "/queues/q1/?from=1700000000&to=1700003600")
    assert (count.url, client.url) == ("", "/connections/?q=billing+%26+co")
    assert message.url.endswith("/messages/ID%3Aa-1/") or message.url.endswith("/messages/ID:a-1/")
    assert result_tables.link_to("destination", "queue://a.>", stored["window"]) == ""
    assert result_tables.link_to("destination", "", stored["window"]) == ""


@pytest.mark.parametrize("query", [{"t0.sort": "nonsense", "t0.page": "x"}, {"t0.page": "0"}, {"t0.page": "²"}])
def test_what_makes_no_sense_in_a_url_falls_back_to_its_default(query, stored, tmp_path):
    [page, _] = result_tables.result_pages(stored, tmp_path / "run", query)
    assert (page.first, page.rows[0][0].text) == (1, "q0")


def test_without_its_file_a_table_shows_the_rows_of_the_result(stored, tmp_path):
    [page, _] = result_tables.result_pages(stored, tmp_path / "gone", {"t0.page": "2"})
    assert (page.first, page.rows[0][0].text) == (26, "q25")


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (None, "part", "–"), (0.1234, "part", "12.3%"), (0.5, "change", "+50.0%"), (-0.25, "change", "−25.0%"),
        (2.5, "times", "2.5×"), (90.0, "seconds", "2 min"), (2.44, "ms", "2.44 ms"), (1234.5, "ms", "1.2 s"),
        ("2026-03-05T06:07:08Z", "time", "5 Mar 2026, 06:07:08"), ("queue://a", "", "queue://a"), (12, "count", "12"),
        (2048, "bytes", "2.0 KiB"),
    ],
)  # fmt: skip
def test_a_value_reads_in_its_unit(value, unit, text):
    assert number_format.format_value(value, unit) == text
