"""Test the prefixes that say how a selector reads what it compares, and selectors that are joined."""

from __future__ import annotations

import pytest

from brokerapp.errors import SelectorSyntaxError
from brokerapp.model.jms.properties import PropertyType
from brokerapp.model.selector_prefixes import CONVERT, HYPHENATED, converting, split_prefixes
from brokerapp.selectors import compile_selector
from brokerapp.selectors.joining import join_selectors
from tests.brokerapp.selectors.typed_messages import jms_headers

TYPED = jms_headers({"n": (PropertyType.INT, 2), "z": (PropertyType.BOOLEAN, True), "d": (PropertyType.DOUBLE, 1.5)})


@pytest.mark.parametrize("condition", ["n = '2'", "'2' = n", "z = 'true'", "d = '1.5'", "n + 1 = '3'"])
def test_constants_of_text_stand_for_typed_values_where_a_selector_converts(condition):
    assert compile_selector(condition).evaluate(TYPED) is False
    assert compile_selector(converting(condition)).evaluate(TYPED) is True


def test_a_prefix_is_put_before_a_selector_once():
    assert converting("a = 1") == f"{CONVERT}a = 1"
    for already in (f"{CONVERT}a = 1", f"{HYPHENATED}{CONVERT}a = 1"):
        assert converting(already) == already
    assert converting(f"{HYPHENATED}a-b = 1") == f"{CONVERT}{HYPHENATED}a-b = 1"


def test_each_prefix_counts_once():
    assert split_prefixes("a = 1") == (frozenset(), "a = 1")
    assert split_prefixes(f"{HYPHENATED}{CONVERT}a = 1") == ({CONVERT, HYPHENATED}, "a = 1")
    assert split_prefixes(f"{CONVERT}{CONVERT}a = 1") == ({CONVERT}, f"{CONVERT}a = 1")


def test_an_error_names_its_position_in_what_the_client_wrote():
    with pytest.raises(SelectorSyntaxError) as caught:
        compile_selector(converting("a = = 1"))
    assert (caught.value.text, caught.value.position) == ("a = = 1", 4)


@pytest.mark.parametrize(
    ("selectors", "joined"),
    [
        ([], None),
        (["a = 1", None], None),
        (["a = 1"], "a = 1"),
        (["a = 1", "a = 1"], "a = 1"),
        (["a = 1", "b = 2"], "(a = 1) OR (b = 2)"),
        ([f"{CONVERT}a = 1", f"{CONVERT}b = 2"], f"{CONVERT}(a = 1) OR (b = 2)"),
        ([f"{CONVERT}a = 1", "b = 2"], f"{CONVERT}(a = 1) OR (b = 2)"),
        ([f"{CONVERT}a = 1", "a = 1"], f"{CONVERT}a = 1"),
        ([f"{HYPHENATED}a-b = 1", f"{HYPHENATED}{CONVERT}c = 1"], f"{CONVERT}{HYPHENATED}(a-b = 1) OR (c = 1)"),
        ([f"{HYPHENATED}a-b = 1", "a-b = 1"], None),
        ([f"n = {n}" for n in range(33)], None),
    ],
)
def test_selectors_of_several_consumers_become_one(selectors, joined):
    found = join_selectors(selectors)
    assert found == joined
    if found is not None:
        compile_selector(found)
