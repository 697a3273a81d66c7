"""Test properties of all selectors: agreement with a simple evaluation, and no crash for any text."""

import pytest
from hypothesis import event, example, given, settings
from hypothesis import strategies as st

from brokerapp.errors import SelectorSyntaxError
from brokerapp.selectors import Selector, compile_selector
from brokerapp.selectors.explain import explain
from brokerapp.selectors.parser import parse
from brokerapp.selectors.render import render
from brokerapp.selectors.tree import Negative, PropertyRef
from tests.brokerapp.selectors.trees import random_condition, random_headers, verdict

#: What selectors are made of, whole and broken.
SCRAPS = r"""
a b JMSPriority correlation-id = <> < <= > >= + - * / % ( ) , AND OR NOT BETWEEN IN LIKE ESCAPE IS NULL TRUE FALSE XPATH
5 2.5 0x1F 010 1e3 'x' 'it''s' '%' ' /* */ -- " . ; REGEX( INLIST( MAKELIST( SPLIT( REPLACE( é \
convert_string_expressions: hyphenated_props:
"""
words = st.lists(st.sampled_from(SCRAPS.split()), max_size=12)


@settings(max_examples=120, deadline=None)
@given(st.randoms(use_true_random=False))
def test_the_predicate_agrees_with_a_simple_reading_of_the_tree(random):
    tree = random_condition(random)
    selector = Selector("", tree)
    for _ in range(5):
        headers = random_headers(random)
        assert selector.evaluate(headers) is verdict(tree, headers), (render(tree), headers)


@settings(max_examples=120, deadline=None)
@given(st.randoms(use_true_random=False))
@pytest.mark.scenario("SE-16")
def test_a_rendered_tree_is_read_as_the_same_tree(random):
    tree = random_condition(random)
    assert parse(render(tree)) == tree


@given(st.text(st.characters(blacklist_categories=("Cs",)), min_size=1))
def test_any_name_can_be_rendered(name):
    tree = Negative(PropertyRef(name))
    assert parse(render(tree) + " = 1").left == tree


@settings(max_examples=80, deadline=None)
@given(st.randoms(use_true_random=False))
def test_an_explanation_comes_to_what_the_selector_comes_to(random):
    selector, headers = Selector("", random_condition(random)), random_headers(random)
    explained = explain(selector, headers)
    assert explained.value is selector.evaluate(headers)
    waiting = [explained]
    while waiting:
        clause = waiting.pop()
        assert clause.reason
        waiting += clause.clauses


@settings(max_examples=120, deadline=None)
@given(st.text() | words.map(" ".join) | words.map("".join))
@example("n = 1e999")
@example("n = " + "9" * 5000)
@example("REGEX('(', n)")
@example("REGEX('" + "(" * 5000 + "', n)")
@example("n LIKE '" + "%" * 5000 + "'")
def test_any_text_is_a_selector_or_a_syntax_error(text):
    try:
        selector = compile_selector(text)
    except SelectorSyntaxError as refused:
        event("refused")
        wrong_at = refused.position
    else:
        event("accepted")
        wrong_at = 0
        assert selector.evaluate({"a": "1", "b": "x"}) in (True, False, None)
        assert selector.evaluate({}) in (True, False, None)
    assert 0 <= wrong_at <= len(text)
