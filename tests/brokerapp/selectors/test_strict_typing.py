"""Test strict selectors, in which text headers are text, as in ActiveMQ's own filters."""

import pytest

from brokerapp.selectors import compile_selector

HEADERS = {"n": "5", "flag": "true", "colour": "red", "priority": "7"}


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("n = 5", False),
        ("n <> 5", True),
        ("5 = n", False),
        ("n > 4", False),
        ("n BETWEEN 1 AND 9", False),
        ("n = '5'", True),
        ("n IN ('5', '6')", True),
        ("n LIKE '5%'", True),
        ("flag", False),
        ("NOT flag", True),
        ("flag = TRUE", False),
        ("flag <> TRUE", True),
        ("colour = 'red' AND flag", False),
        ("n + 1 = 6", None),
        ("-n = -5", None),
        ("missing = 5", None),
        ("missing <> 5", None),
        ("missing", None),
        ("(n = 5) IS NULL", False),
        ("(n = 5 OR colour = 'red') = TRUE", True),
        ("JMSPriority > 6", True),
        ("convert_string_expressions:n = 5", True),
    ],
)
def test_text_is_neither_number_nor_truth(selector, expected):
    assert compile_selector(selector, strict=True).evaluate(HEADERS) is expected


def test_the_same_text_may_be_used_both_ways_at_once():
    strict, lenient = (compile_selector("n = 5", each) for each in (True, False))
    assert (strict.matches(HEADERS), lenient.matches(HEADERS)) == (False, True)
