"""Requests travel as dicts and are refused with a sentence when they make no sense."""

import pytest

from analytics.catalogue import ANALYSES, analysis_for
from analytics.request import AnalysisRequest, Window
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
    ],
)
def test_a_request_comes_back_from_its_dict(request_):
    assert AnalysisRequest.from_dict(request_.to_dict()) == request_


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({}, "kind is missing"),
        ({"kind": "traffic", "window": "1w"}, "'1w' is not a window"),
        ({"kind": "traffic", "window": "0h"}, "'0h' is not a window"),
        ({"kind": "traffic", "since_us": 1}, "given together"),
        ({"kind": "traffic", "since_us": 5, "until_us": 5}, "begins before it ends"),
        ({"kind": "weather"}, "'weather' is not an analysis: expected one of traffic"),
        ({"kind": "traffic", "colour": "red"}, "has no parameter colour"),
    ],
)
def test_a_request_that_makes_no_sense_is_refused(data, said):
    with pytest.raises(RequestRefused, match=said):
        analysis_for(AnalysisRequest.from_dict(data))


@pytest.mark.parametrize(("text", "length"), [("15m", HOUR // 4), ("1h", HOUR), ("7d", 7 * 24 * HOUR)])
def test_a_window_ends_now(text, length):
    assert AnalysisRequest("traffic", text).window_at(NOW) == Window(NOW - length, NOW)


def test_a_window_with_both_ends_stays_where_it_is():
    assert AnalysisRequest("traffic", since_us=5, until_us=9).window_at(NOW) == Window(5, 9)


@pytest.mark.parametrize("analysis", ANALYSES.values(), ids=lambda each: each.kind)
def test_defaults_of_the_catalogue_are_choices_and_make_a_request(analysis):
    for parameter in analysis.parameters:
        assert parameter.default in dict(parameter.choices)
        for value, _ in parameter.choices:
            AnalysisRequest.from_dict({"kind": analysis.kind, parameter.name: value})
