"""Test selectors on the typed properties of JMS messages: a table of cases, and agreement of the explanation."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brokerapp.model.jms.properties import PropertyType
from brokerapp.selectors import Selector, SelectorView, compile_selector
from brokerapp.selectors.explain import explain
from tests.brokerapp.selectors.trees import random_condition
from tests.brokerapp.selectors.typed_messages import jms_headers, random_jms_headers

BYTE, SHORT, INT, LONG = PropertyType.BYTE, PropertyType.SHORT, PropertyType.INT, PropertyType.LONG
FLOAT, DOUBLE, BOOLEAN = PropertyType.FLOAT, PropertyType.DOUBLE, PropertyType.BOOLEAN
CHAR, NULL = PropertyType.CHAR, PropertyType.NULL
CONVERT = "convert_string_expressions:"

#: (selector, type and value of the property `p`, what it comes to), as ActiveMQ 5.17.2 answers.
CASES = [
    ("p = 5", (INT, 5), True),
    ("p = 5", (LONG, 5), True),
    ("p = 5.0", (BYTE, 5), True),
    ("p = 5", (None, "5"), False),
    ("p <> 5", (None, "5"), True),
    ("p > 4", (None, "5"), False),
    ("p = '5'", (INT, 5), False),
    ("p = '5'", (None, "5"), True),
    ("5 = p", (SHORT, 5), False),
    ("p BETWEEN 5 AND 6", (SHORT, 5), True),
    ("p NOT BETWEEN 5 AND 6", (None, "7"), False),
    ("p = 0.1", (FLOAT, 0.1), False),
    ("p > 4", (DOUBLE, math.nan), True),
    ("p = p", (DOUBLE, math.nan), True),
    ("p = 9223372036854775807", (LONG, 2**63 - 1), True),
    ("p = 9223372036854775806", (LONG, 2**63 - 1), False),
    # truth
    ("p", (BOOLEAN, True), True),
    ("p", (None, "true"), False),
    ("NOT p", (None, "true"), True),
    ("NOT p", (INT, 1), True),
    ("p = TRUE", (None, "true"), False),
    ("p <> TRUE", (INT, 1), True),
    ("p = 'true'", (BOOLEAN, True), False),
    # what is missing
    ("q", (INT, 5), None),
    ("p = q", (INT, 5), None),
    ("p IS NULL", (NULL, None), True),
    ("p = 5", (NULL, None), None),
    # text
    ("p LIKE '5%'", (INT, 5), False),
    ("p NOT LIKE '5%'", (INT, 5), True),
    ("p IN ('5')", (INT, 5), None),
    ("p IN ('5')", (None, "5"), True),
    ("p = 'x'", (CHAR, "x"), False),
    ("REGEX('^5$', p)", (INT, 5), True),
    ("INLIST(SPLIT('5,6', ','), p)", (INT, 5), False),
    ("INLIST(SPLIT('5,6', ','), p)", (None, "5"), True),
    ("INLIST(MAKELIST(5, 6), p)", (INT, 5), True),
    ("REPLACE(p, '5', 'x') = 'x'", (None, "5"), True),
    ("REPLACE(p, '5', 'x') = 'x'", (INT, 5), None),
    # arithmetic
    ("p * 1000000000 > 6000000000", (INT, 7), False),
    ("p * 1000000000 > 6000000000", (LONG, 7), True),
    ("p + 1 < 0", (LONG, 2**63 - 1), True),
    ("p / 2 = 3.5", (SHORT, 7), True),
    ("p / 0 > 1", (INT, 7), True),
    ("p % 0 > 1", (INT, 7), True),
    ("-p = -7", (LONG, 7), True),
    ("-p = -7", (BYTE, 7), None),
    ("p + 1 = '51'", (None, "5"), True),
    ("p + 0.5 = '50.5'", (None, "5"), True),
    ("1 + p = 6", (None, "5"), None),
    ("p * 2 = 10", (BOOLEAN, True), None),
    # text read as numbers and truths
    (CONVERT + "p = 5", (None, "5"), True),
    (CONVERT + "5 < p", (None, "7"), True),
    (CONVERT + "p > 5", (None, "5.5"), True),
    (CONVERT + "p <> 5", (None, "five"), True),
    (CONVERT + "p = 5", (None, "five"), False),
    (CONVERT + "p = '5'", (INT, 5), True),
    (CONVERT + "p = TRUE", (None, "true"), True),
    (CONVERT + "p", (None, "true"), False),
    ("hyphenated_props:" + CONVERT + "p = 5", (None, "5"), True),
]


@pytest.mark.parametrize(("selector", "value", "expected"), CASES)
def test_a_typed_property_is_selected_by_its_type(selector, value, expected):
    assert compile_selector(selector).evaluate(jms_headers({"p": value})) is expected


def test_the_same_text_without_a_type_is_read_as_what_it_is_compared_with():
    assert compile_selector("p = 5").matches({"p": "5"})
    assert not compile_selector("p = 5").matches(jms_headers({"p": (None, "5")}))


@pytest.mark.parametrize(
    ("selector", "headers"),
    [
        ("JMSPriority = 7", {"priority": "7"}),
        ("JMSPriority = 4 AND JMSXDeliveryCount = 1 AND JMSXGroupSeq = 0", {}),
        ("JMSTimestamp > 1700000000000", {"timestamp": "1700000000001"}),
        ("JMSDeliveryMode = 'PERSISTENT'", {"persistent": "true"}),
        ("JMSDeliveryMode = 'NON_PERSISTENT' AND JMSRedelivered = FALSE AND JMSExpiration = 0", {}),
        ("JMSReplyTo = 'topic://r'", {"reply-to": "/topic/r"}),
        ("JMSDestination = 'queue://q'", {"destination": "/queue/q"}),
        ("JMSCorrelationID = '5' AND JMSType = 'car'", {"correlation-id": "5", "type": "car"}),
        ("JMSXGroupID = 'g' AND JMSXUserID = 'ada'", {"JMSXGroupID": "g", "JMSXUserID": "ada"}),
        ("priority > 6 AND reply-to IS NULL", {"priority": "7"}),
    ],
)  # fmt: skip
def test_identifiers_have_the_types_of_jms(selector, headers):
    assert compile_selector(selector).evaluate(jms_headers({}, **headers)) is True


def test_a_property_comes_before_the_header_of_its_name():
    headers = jms_headers({"type": (None, "loan"), "priority": (DOUBLE, 1.5)}, type="car", priority="7")
    assert compile_selector("type = 'loan' AND priority = 1.5 AND JMSType = 'car' AND JMSPriority = 7").matches(headers)


def test_a_definition_that_takes_text_for_text_reads_typed_numbers_as_numbers():
    selector = compile_selector("p = 5", True)
    assert selector.matches(jms_headers({"p": (INT, 5)}))
    assert not selector.matches({"p": "5"})


def test_xpath_looks_into_the_body_of_a_jms_message():
    assert compile_selector("XPATH '//a'").matches(SelectorView(jms_headers({}), b"<a/>"))


def test_text_does_not_grow_without_end():
    selector = compile_selector(" + ".join(["p"] * 9) + " <> 'x'")
    assert selector.evaluate(jms_headers({"p": (None, "x" * 200_000)})) is None


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ((INT, 5), "p is the int 5"),
        ((DOUBLE, 5.0), "p is the double 5.0"),
        ((None, "5"), "p is the text '5'"),
        ((BOOLEAN, True), "p is true"),
        ((NULL, None), "p is missing"),
    ],
)
def test_an_explanation_names_the_type_of_a_property(value, reason):
    assert explain(compile_selector("p = 6"), jms_headers({"p": value})).reason == reason


@settings(max_examples=120, deadline=None)
@given(st.randoms(use_true_random=False))
def test_an_explanation_of_typed_properties_comes_to_what_the_selector_comes_to(random):
    selector, headers = Selector("", random_condition(random)), random_jms_headers(random)
    assert explain(selector, headers).value is selector.evaluate(headers)
