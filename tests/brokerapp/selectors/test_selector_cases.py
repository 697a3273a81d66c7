"""Test the parser and the evaluation of selectors on the table of cases."""

import os
import signal
import time

import pytest

from brokerapp.errors import SelectorSyntaxError
from brokerapp.selectors import SelectorView, compile_selector
from brokerapp.selectors.explain import explain
from brokerapp.selectors.matching.overruns import LEAST_MOMENT, MAX_OVERRUNS, SlowConditionTracker
from brokerapp.selectors.matching.xml_body import MAX_BODY, SECONDS
from brokerapp.selectors.parser import MAX_DEPTH, parse
from brokerapp.selectors.render import render
from brokerapp.selectors.tokens import MAX_LENGTH
from brokerapp.selectors.xpath.xpath_process import XPATH_PROCESS
from tests.brokerapp.selectors.cases import BODIES, CASES, REFUSED, XPATHS


@pytest.mark.parametrize(("text", "headers", "expected"), CASES)
@pytest.mark.scenario(
    "SE-01",
    "SE-03",
    "SE-04",
    "SE-05",
    "SE-06",
    "SE-07",
    "SE-08",
    "SE-09",
    "SE-10",
    "SE-11",
    "SE-12",
    "SE-14",
    "SE-15",
    "SE-17",
    "SE-18",
    "SE-23",
    "SE-25",
)
def test_a_selector_is_true_false_or_unknown(text, headers, expected):
    selector = compile_selector(text)
    assert selector.evaluate(headers) is expected
    assert selector.matches(headers) is (expected is True)


@pytest.mark.parametrize(("text", "position"), REFUSED)
@pytest.mark.scenario("SE-13")
def test_what_cannot_be_meant_is_refused_with_its_position(text, position):
    with pytest.raises(SelectorSyntaxError) as refused:
        compile_selector(text)
    assert refused.value.position == position


@pytest.mark.parametrize(("text", "matching"), XPATHS)
@pytest.mark.scenario("SE-02")
def test_xpath_looks_into_bodies_of_xml_and_into_no_others(text, matching):
    selector = compile_selector(text)
    headers = {"n": "1", "content-length": "1"}
    assert {name for name, body in BODIES.items() if selector.evaluate(SelectorView(headers, body))} == matching
    assert parse(render(selector.tree)) == selector.tree


def test_text_is_utf_8_whatever_its_declaration_says():
    selector = compile_selector("XPATH '/r = \"\u00e9\"'")
    body = "<?xml version='1.0' encoding='ISO-8859-1'?><r>\u00e9</r>".encode()
    assert selector.matches(SelectorView({}, body))
    assert not selector.matches(SelectorView({"content-length": str(len(body))}, body))


def test_without_a_body_xpath_is_false():
    assert compile_selector("XPATH 'true()'").evaluate({}) is False


@pytest.mark.parametrize(
    ("text", "seen", "reason"),
    [
        ("XPATH 'a'", SelectorView({}, b"<a/>"), "evaluated on the body"),
        ("XPATH 'a'", SelectorView({}, b"a"), "the body is not XML"),
        ("XPATH 'a'", {}, "the message has no body"),
        ("XQUERY 'a'", SelectorView({}, b"<a/>"), "XQUERY never holds, as in ActiveMQ"),
    ],
)
def test_why_a_condition_on_the_body_came_to_that_is_said(text, seen, reason):
    clause = explain(compile_selector(text), seen)
    assert (clause.text, clause.reason) == (text, reason)


def test_a_selector_says_what_it_reads():
    selector = compile_selector("region = 'eu' AND (JMSPriority > 4 OR INLIST(MAKELIST(a, b), region)) OR c IN ('x')")
    assert selector.properties == {"region", "JMSPriority", "a", "b", "c"}


def test_one_text_is_compiled_once():
    assert compile_selector("n = 4711") is compile_selector("n = 4711")


def test_300_alternatives_are_no_depth():
    selector = compile_selector(" OR ".join(f"n = {i}" for i in range(300)))
    assert selector.matches({"n": "299"})
    assert not selector.matches({"n": "300"})


@pytest.mark.parametrize(
    "text",
    [
        "(" * 8000 + "a" + ")" * 8000,
        "(" * 8000,
        "NOT " * 4000 + "a",
        "-" + " -" * 8000 + "a = 1",
        "a = 1" + " + 1" * 4000,
        "a" + " = a" * 4000,
        "+ " * 8000 + "a",
        "REGEX('x', " + "REPLACE(" * 1000,
    ],
)
def test_deep_nesting_is_refused_by_its_limit(text):
    with pytest.raises(SelectorSyntaxError, match=f"more than {MAX_DEPTH} levels"):
        compile_selector(text)


def test_as_deep_as_allowed_is_compiled_and_evaluated():
    assert compile_selector("(" * (MAX_DEPTH - 1) + "a" + ")" * (MAX_DEPTH - 1)).matches({"a": "true"})
    assert compile_selector("NOT " * (MAX_DEPTH - 2) + "a").matches({"a": "true"})
    assert compile_selector("a" + " + 1" * (MAX_DEPTH - 2) + " > 0").matches({"a": "1"})


def test_a_selector_has_a_length_limit():
    with pytest.raises(SelectorSyntaxError, match=str(MAX_LENGTH)):
        compile_selector("a" * (MAX_LENGTH + 1))


@pytest.mark.parametrize("hyphens", ["-" * 16_000, "--1" * 5_300, "--1" * 5_300 + "\n= 1"])
def test_many_hyphens_take_no_more_than_linear_time(hyphens):
    started = time.perf_counter()
    with pytest.raises(SelectorSyntaxError):
        compile_selector("a = " + hyphens)
    assert time.perf_counter() - started < 0.5


def test_like_takes_no_more_than_linear_time_for_each_wildcard():
    selector = compile_selector("name LIKE '" + "%a" * 30 + "%b'")
    started = time.perf_counter()
    assert selector.evaluate({"name": "a" * 5000}) is False
    assert time.perf_counter() - started < 1


@pytest.mark.parametrize(
    ("condition", "hard", "easy"),
    [
        ("REGEX('(a|aa)+$', x)", "a" * 80 + "b", "aa"),
        ("REPLACE(x, '(a|aa)+$', 'b') = 'b'", "a" * 80 + "b", "aa"),
        ("INLIST(SPLIT(x, '(a|aa)+$'), 'b')", "a" * 80 + "b", "baa"),
        ("REPLACE(x, '', '" + "y" * 8000 + "') <> ''", "x" * 100_000, "x"),
        ("REPLACE(x, '(?=(x*))', '$1$1$1$1') <> ''", "x" * 100_000, "x"),
    ],
)
def test_a_pattern_that_takes_too_long_for_a_text_or_makes_too_much_of_it_is_unknown_there(condition, hard, easy):
    selector, started = compile_selector(condition), time.perf_counter()
    assert selector.evaluate({"x": easy}) is True
    assert selector.evaluate({"x": hard}) is None
    assert time.perf_counter() - started < 2


def test_a_pattern_that_takes_too_long_again_and_again_is_not_asked_any_more():
    selector = compile_selector("REGEX('(aa|a)+$', x)")
    for _ in range(MAX_OVERRUNS):
        assert selector.matches({"x": "aa"})
        assert selector.evaluate({"x": "a" * 80 + "b"}) is None
    assert selector.evaluate({"x": "aa"}) is None


#: Every level takes as many times longer as there are nodes.
ENDLESS = "count(//a[count(//a[count(//a[count(//a) = 1]) = 1]) = 1]) = 1"
MANY = b"<r>" + b"<a/>" * 1000 + b"</r>"
#: Bodies that grow when they are read, or are as deep as they are long.
BOMBS = [
    b"<!DOCTYPE r [<!ENTITY a '"
    + b"x" * 1000
    + b"'><!ENTITY b '"
    + b"&a;" * 1000
    + b"'>]><r>"
    + b"&b;" * 1000
    + b"</r>",
    b"<a>" * 100_000 + b"</a>" * 100_000,
]


def test_an_xpath_that_takes_too_long_for_a_body_is_false_there_and_in_the_end_not_asked_any_more():
    selector, started = compile_selector(f"XPATH '{ENDLESS}'"), time.perf_counter()
    assert selector.matches(SelectorView({}, b"<a/>"))
    for _ in range(MAX_OVERRUNS):
        assert not selector.matches(SelectorView({}, MANY))
        assert compile_selector("XPATH 'count(//a) = 1000'").matches(SelectorView({}, MANY)), "the others go on"
    assert time.perf_counter() - started < 5
    assert not selector.matches(SelectorView({}, b"<a/>"))


def test_an_xpath_that_takes_too_long_for_any_body_is_refused():
    expression = "(/|/*)"
    for _ in range(30):
        expression = f"(/|/*)[count({expression}) > 0]"
    with pytest.raises(SelectorSyntaxError, match="too long"):
        compile_selector(f"XPATH '{expression}'")


@pytest.mark.parametrize("body", [*BOMBS, b"<r>" + b"x" * MAX_BODY + b"</r>"])
def test_a_body_that_is_meant_to_keep_its_reader_busy_is_no_match(body):
    started = time.perf_counter()
    assert not compile_selector("XPATH 'true()'").matches(SelectorView({}, body))
    assert time.perf_counter() - started < 2


def test_memory_an_xpath_wants_in_excess_is_not_given():
    body = b"<r>" + b"x" * (MAX_BODY - 100) + b"</r>"
    assert not compile_selector(f"XPATH 'concat({','.join('/' * 3000)}) = 1'").matches(SelectorView({}, body))
    assert compile_selector("XPATH 'r'").matches(SelectorView({}, body))


def test_conditions_on_bodies_outlive_the_process_that_computes_them():
    selector, body = compile_selector("XPATH 'a'"), SelectorView({}, b"<a/>")
    assert selector.matches(body)
    os.killpg(XPATH_PROCESS._process.pid, signal.SIGKILL)
    assert selector.matches(body)
    os.kill(XPATH_PROCESS._process.pid, signal.SIGKILL)
    assert selector.matches(SelectorView({}, b"<a/>"))


def test_many_conditions_that_take_too_long_waste_no_more_each_than_a_short_moment():
    body = SelectorView({"x": "a" * 80 + "b"}, MANY)
    for number in range(60):
        assert not compile_selector(f"REGEX('(aa|a|{number})+$', x)").matches(body)
    for number in range(10):
        assert not compile_selector(f"XPATH '{ENDLESS} and {number}'").matches(body)
    assert SlowConditionTracker.moment(SECONDS) == LEAST_MOMENT
    assert compile_selector("XPATH 'count(//a) = 1000'").matches(body), "the others have time enough"
    while SlowConditionTracker.moment(SECONDS) < SECONDS:
        assert compile_selector("REGEX('a', x)").matches(body)
