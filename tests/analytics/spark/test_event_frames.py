"""Test how the footers of files decide whether Spark needs filters and several tasks. No Spark."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analytics.archive.footer_stats import FooterStats, read_footer
from analytics.requests.request import TimeWindow
from analytics.spark.event_frames import TASK_EVENTS, fit_one_task, lie_within
from brokerapp.tracing.arrow_schema import MOMENT
from brokerapp.tracing.schema import VERSION_KEY

WINDOW = TimeWindow(1_000_000, 2_000_000)


def said(rows, first_us, last_us, version=1):
    """The footer of a file; one that does not name the version of its events is of the first."""
    return FooterStats(rows, first_us, last_us, version)


def file_of(path, *moments_us, **how):
    pq.write_table(pa.table({"ts": pa.array(moments_us, pa.int64()).view(MOMENT)}), path, **how)
    return path


@pytest.mark.parametrize(("in_files", "others", "expected"), [
    ([TASK_EVENTS], 0, True), ([TASK_EVENTS + 1], 0, False), ([TASK_EVENTS - 1], 1, True), ([TASK_EVENTS], 1, False),
    ([TASK_EVENTS - 1, 1], 0, True), ([TASK_EVENTS, 1], 0, False),
    ([], TASK_EVENTS, True), ([], TASK_EVENTS + 1, False),
])  # fmt: skip
def test_up_to_that_many_events_are_few_in_files_and_beside_them(in_files, others, expected):
    assert fit_one_task([said(rows, 0, 1) for rows in in_files], others) is expected


def test_events_of_files_that_nobody_looked_into_are_not_taken_for_few_nor_for_those_of_a_window():
    assert not fit_one_task(None, 0)
    assert not lie_within(None, [WINDOW])


@pytest.mark.parametrize(("first", "last", "expected"), [
    (1_000_000, 1_999_999, True), (999_999, 1_500_000, False), (1_500_000, 2_000_000, False),
])  # fmt: skip
def test_a_file_within_a_window_begins_with_it_or_later_and_ends_before_it_does(tmp_path, first, last, expected):
    footer = read_footer(file_of(tmp_path / "a.parquet", first, last))
    assert footer == said(2, first, last)
    assert lie_within([footer], [WINDOW]) is expected


def test_each_file_may_lie_in_another_window_but_none_in_two_halves():
    later = TimeWindow(5_000_000, 6_000_000)
    early, late = said(1, 1_000_000, 1_100_000), said(1, 5_000_000, 5_100_000)
    assert lie_within([early, late], [WINDOW, later])
    assert not lie_within([early, late], [WINDOW])
    assert not lie_within([said(2, 1_000_000, 5_000_000)], [WINDOW, later])


def test_of_a_file_whose_footer_does_not_say_when_its_events_were_it_is_not_believed_that_they_are_in_a_window(
    tmp_path,
):
    footer = read_footer(file_of(tmp_path / "a.parquet", 1_500_000, write_statistics=False))
    assert footer == said(1, None, None)
    assert not lie_within([footer], [WINDOW])
    assert fit_one_task([footer], 0)


def test_a_file_of_several_row_groups_reaches_from_the_first_event_of_all_to_the_last(tmp_path):
    path = file_of(tmp_path / "a.parquet", 1_900_000, 1_200_000, 1_100_000, 1_500_000, row_group_size=2)
    assert read_footer(path) == said(4, 1_100_000, 1_900_000)


def test_a_footer_names_the_version_of_the_events(tmp_path):
    moments = pa.table({"ts": pa.array([1_500_000], pa.int64()).view(MOMENT)}).replace_schema_metadata(
        {VERSION_KEY: b"3"}
    )
    pq.write_table(moments, tmp_path / "a.parquet")
    assert read_footer(tmp_path / "a.parquet") == said(1, 1_500_000, 1_500_000, version=3)
