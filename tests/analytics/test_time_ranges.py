"""Test how explicit time ranges of requests are read, and which are refused."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.requests.catalogue import ANALYSES, analysis_for
from analytics.requests.request import AnalysisRequest, TimeWindow
from analytics.requests.time_ranges import (
    CLOCK_TOLERANCE_US,
    checked,
    read_link,
    read_moment,
    read_time_range,
    refuse_unrecorded,
)
from brokerapp.errors import RequestRefused

NOW_US = 1_774_771_200_000_000  # 2026-03-29T08:00:00Z, in the night of which clocks of Berlin went forward
HOUR_US = 3_600_000_000
BERLIN = ZoneInfo("Europe/Berlin")


def test_times_are_read_in_the_zone_unless_they_have_an_offset():
    assert read_moment("2026-03-29T09:00", NOW_US, BERLIN) == NOW_US - HOUR_US
    assert read_moment("2026-03-29T01:30", NOW_US, BERLIN) == NOW_US - 15 * HOUR_US // 2, "in winter time still"
    assert read_moment("2026-03-29T07:00Z", NOW_US, BERLIN) == NOW_US - HOUR_US
    assert read_moment(" 2h ", NOW_US, BERLIN) == NOW_US - 2 * HOUR_US


def test_a_time_range_without_an_end_ends_now_and_without_both_is_none():
    assert read_time_range("2h", "", NOW_US) == TimeWindow(NOW_US - 2 * HOUR_US, NOW_US)
    assert read_time_range("2h", "1h", NOW_US) == TimeWindow(NOW_US - 2 * HOUR_US, NOW_US - HOUR_US)
    assert read_time_range("", " ", NOW_US) is None


@pytest.mark.parametrize(
    ("since", "until", "said"),
    [
        ("", "1h", "has no start"),
        ("1h", "2h", "must start before it ends: got 2026-03-29 09:00:00 CEST and 2026-03-29 08:00:00 CEST"),
        ("1h", "1h", "must start before it ends"),
        ("1h", "2026-03-29T10:02", "must not end in the future: 2026-03-29 10:02:00 CEST is still to come"),
        ("2026-03-29T10:30", "", "must start before it ends"),
        ("1930-01-01", "1h", "must start before it ends"),
        ("soon", "1h", r"invalid time 'soon': expected a duration such as 15m.*\(Europe/Berlin by default\)"),
        ("0001-01-01T00:00+14:00", "1h", "must start before it ends|invalid time"),
    ],
)
def test_a_time_range_that_makes_no_sense_is_refused_with_the_rule(since, until, said):
    with pytest.raises(RequestRefused, match=said):
        read_time_range(since, until, NOW_US, BERLIN)


def test_a_clock_that_is_slightly_ahead_is_no_error():
    assert checked(NOW_US - 1, NOW_US + CLOCK_TOLERANCE_US, NOW_US) == TimeWindow(NOW_US - 1, NOW_US)


@given(st.integers(1, 10**9), st.integers(1, 10**6), st.sampled_from(["UTC", "Europe/Berlin", "Asia/Kathmandu"]))
def test_a_range_comes_back_from_its_texts(age_s, length_s, zone):
    until = datetime.fromtimestamp(NOW_US / 1e6, UTC) - timedelta(seconds=age_s)
    since = until - timedelta(seconds=length_s)
    texts = (each.astimezone(ZoneInfo(zone)).isoformat() for each in (since, until))
    found = read_time_range(*texts, NOW_US, ZoneInfo(zone))
    assert (found.since_us, found.until_us) == (int(since.timestamp()) * 10**6, int(until.timestamp()) * 10**6)


@pytest.mark.parametrize(
    ("ends", "found"),
    [
        (("1", "2"), (1, 2)), (("2", "2"), None), (("2", "1"), None), (("", "1"), None), (("1h", "1"), None),
        (("٣", "9"), None), (("1", "9" * 12), None),
    ],
)  # fmt: skip
def test_a_link_has_both_ends_in_seconds(ends, found):
    assert read_link(*ends) == found


def test_a_range_of_which_nothing_is_stored_is_refused_and_one_of_which_a_part_is_is_not():
    window = TimeWindow(NOW_US - 2 * HOUR_US, NOW_US - HOUR_US)
    for began_us in (None, window.since_us, window.until_us - 1):
        refuse_unrecorded(window, began_us)
    with pytest.raises(RequestRefused, match=r"nothing is recorded .* available since 2026-03-29 07:00:00 UTC"):
        refuse_unrecorded(window, window.until_us)


def test_the_longest_time_range_of_an_analysis_holds_for_explicit_ones():
    week_us = 7 * 24 * HOUR_US
    analysis_for(AnalysisRequest("weeks", since_us=NOW_US - week_us, until_us=NOW_US))
    for kind in ANALYSES:
        request = AnalysisRequest(kind, since_us=NOW_US - week_us - HOUR_US, until_us=NOW_US)
        if kind != "weeks":
            analysis_for(request)
    with pytest.raises(RequestRefused, match=r"of “Week-over-week comparison” must be at most 7 days long, got 7\.042"):
        analysis_for(AnalysisRequest("weeks", since_us=NOW_US - week_us - HOUR_US, until_us=NOW_US))
