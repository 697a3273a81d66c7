"""Test that requests are serialized as dicts, and that invalid ones are refused with a sentence."""

import re

import pytest

from analytics.model.time_buckets import whole_slots
from analytics.requests.catalogue import ANALYSES, GROUPS, analysis_for
from analytics.requests.parameters import DESTINATION, number, one_of
from analytics.requests.request import AnalysisRequest, TimeWindow
from brokerapp.errors import RequestRefused

HOUR = 3_600_000_000
NOW = 1_760_000_000_000_000


@pytest.mark.parametrize(
    "request_",
    [
        AnalysisRequest("traffic"),
        AnalysisRequest("traffic", "7d"),
        AnalysisRequest("traffic", since_us=1, until_us=2),
        AnalysisRequest("traffic", parameters={"destination": "queue://a"}),
        AnalysisRequest("traffic", routing={"virtualDestinations": []}),
    ],
)
def test_a_request_comes_back_from_its_dict(request_):
    assert AnalysisRequest.from_dict(request_.to_dict()) == request_


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({}, "kind is missing"),
        ({"kind": "traffic", "window": "1w"}, "'1w' is not a time range"),
        ({"kind": "traffic", "window": "0h"}, "'0h' is not a time range"),
        ({"kind": "traffic", "since_us": 1}, "given together"),
        ({"kind": "traffic", "since_us": 5, "until_us": 5}, "must be less than until_us"),
        ({"kind": "weather"}, "'weather' is not a known analysis: expected one of traffic"),
        ({"kind": "traffic", "colour": "red"}, "has no parameter colour"),
    ],
)
def test_a_request_that_makes_no_sense_is_refused(data, said):
    with pytest.raises(RequestRefused, match=said):
        analysis_for(AnalysisRequest.from_dict(data))


@pytest.mark.parametrize(("text", "length"), [("15m", HOUR // 4), ("1h", HOUR), ("7d", 7 * 24 * HOUR)])
def test_a_window_ends_now(text, length):
    assert AnalysisRequest("traffic", text).window_at(NOW) == TimeWindow(NOW - length, NOW)


def test_a_window_is_read_up_to_the_moment_up_to_which_all_is_known():
    window = TimeWindow(10, 20)
    assert [window.up_to(us) for us in (None, 30, 15, 5)] == [window, window, TimeWindow(10, 15), TimeWindow(10, 11)]


def test_slots_that_lie_in_a_window_in_part_are_not_whole():
    minute = 60_000_000
    assert whole_slots(TimeWindow(30_000_000, 4 * minute + 1), 60) == [60, 120, 180]
    assert whole_slots(TimeWindow(0, 2 * minute), 60) == [0, 60]
    assert whole_slots(TimeWindow(30_000_000, 2 * minute), 60) == [0, 60]  # else there would be one


def test_a_window_with_both_ends_stays_where_it_is():
    assert AnalysisRequest("traffic", since_us=5, until_us=9).window_at(NOW) == TimeWindow(5, 9)


@pytest.mark.parametrize("analysis", ANALYSES.values(), ids=lambda each: each.kind)
def test_defaults_and_choices_of_the_catalogue_make_a_request(analysis):
    assert analysis.group in (*GROUPS, "")
    for parameter in analysis.parameters:
        for value, _ in parameter.choices or [(parameter.default, "")]:
            analysis_for(AnalysisRequest.from_dict({"kind": analysis.kind, parameter.name: value}))


@pytest.mark.parametrize(
    ("parameter", "given", "said"),
    [
        (DESTINATION, "queue://", "destination: 'queue://' is not valid: expected a name, or a pattern"),
        (number("days", "Days", 14, 1, 90), "91", "days: '91' is not valid: expected a whole number from 1 to 90"),
        (number("days", "Days", 14, 1, 90), "²", "days: '²' is not valid"),
        (one_of("part", "Percentile", "p95", ("p50", "half"), ("p95", "most")), "p96", "expected one of p50, p95"),
    ],
)
def test_a_parameter_that_breaks_its_rule_is_refused_with_the_rule(parameter, given, said):
    with pytest.raises(RequestRefused, match=re.escape(said)):
        parameter.value(given)


def test_a_parameter_nobody_gave_is_its_default():
    days = number("days", "Days", 14, 1, 90)
    assert [days.value(given) for given in (None, "", " 7 ", 30)] == ["14", "14", "7", "30"]
