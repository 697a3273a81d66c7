"""Test wildcards: matching, lookup in a trie, and which pattern is more specific."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from brokerapp.engine.routing.destination_trie import DestinationTrie, covers, intersection, matches, specificity

NAMES = ("A", "A.B", "A.B.C", "B")
#: Pattern, and whether it matches each of the names.
MATCHING = [
    ("A", (True, False, False, False)),
    ("A.*", (False, True, False, False)),
    ("A.*.*", (False, False, True, False)),
    ("A.>", (True, True, True, False)),
    ("*.B", (False, True, False, False)),
    (">", (True, True, True, True)),
    ("*", (True, False, False, True)),
    ("A.*.C", (False, False, True, False)),
    ("A.*.>", (False, True, True, False)),
    ("A.>.>", (True, True, True, False)),
    ("A.>.C", (False, False, False, False)),
    ("A*", (False, False, False, False)),
    ("a", (False, False, False, False)),
]


@pytest.mark.parametrize(("pattern", "expected"), MATCHING, ids=[pattern for pattern, _ in MATCHING])
@pytest.mark.scenario("SE-19")
def test_a_pattern_matches_names(pattern, expected):
    assert tuple(matches(pattern, name) for name in NAMES) == expected


@pytest.mark.parametrize(("pattern", "expected"), MATCHING, ids=[pattern for pattern, _ in MATCHING])
def test_a_value_under_a_pattern_is_found_by_the_names_it_matches(pattern, expected):
    filed = DestinationTrie()
    filed.add(pattern, "value")
    assert tuple(filed.find(name) == ["value"] for name in NAMES) == expected


@pytest.mark.parametrize(("pattern", "expected"), MATCHING, ids=[pattern for pattern, _ in MATCHING])
def test_a_pattern_finds_the_values_under_the_names_it_matches(pattern, expected):
    filed = DestinationTrie()
    for name in NAMES:
        filed.add(name, name)
    assert sorted(filed.find(pattern)) == [name for name, found in zip(NAMES, expected, strict=True) if found]


def test_a_value_may_be_filed_more_than_once_and_is_found_by_each_filing():
    filed = DestinationTrie()
    for pattern in ("A.*", "A.>", "A.B"):
        filed.add(pattern, "v")
    assert filed.find("A.B") == ["v"] * 3
    filed.remove("A.>", "v")
    assert filed.find("A.B") == ["v"] * 2


def test_removing_what_is_not_there_is_an_error_and_removing_all_leaves_nothing():
    filed = DestinationTrie()
    with pytest.raises(KeyError):
        filed.remove("A.B", "v")
    filed.add("A.B", "v")
    with pytest.raises(ValueError, match="not in list"):
        filed.remove("A.B", "other")
    filed.remove("A.B", "v")
    assert filed.find(">") == []
    assert filed._root.children == {}


ELEMENTS = st.lists(st.sampled_from(["A", "B", "*", ">"]), min_size=1, max_size=4).map(".".join)


def meet(one, other):
    """Whether wildcards on both sides let these two lists of elements be the same name."""
    if one == [">"] or other == [">"]:
        return True
    if not one or not other:
        return one == other
    same = one[0] == other[0] or "*" in (one[0], other[0])
    return same and meet(one[1:], other[1:])


def plain(name):
    """Without repeated `>` at the end."""
    while name.endswith(".>.>"):
        name = name.removesuffix(".>")
    return ">" if name == ">.>" else name


@settings(max_examples=80, deadline=None)
@given(st.lists(ELEMENTS, max_size=6), ELEMENTS)
@example(["A.>"], "A.*")
@example(["A.B.>"], "A.B")
@example(["A.>.>"], "A")
@example([">", ">.A"], "A")
@pytest.mark.scenario("SE-20")
def test_find_agrees_with_looking_at_every_value(patterns, name):
    filed = DestinationTrie()
    for pattern in patterns:
        filed.add(pattern, pattern)
    expected = [each for each in patterns if meet(plain(each).split("."), plain(name).split("."))]
    assert sorted(filed.find(name)) == sorted(expected)
    for pattern in patterns:
        filed.remove(pattern, pattern)
    assert filed.find(">") == []


CONCRETE = st.lists(st.sampled_from(["A", "B", "C"]), min_size=1, max_size=4).map(".".join)


@settings(max_examples=80, deadline=None)
@given(ELEMENTS, ELEMENTS, CONCRETE)
def test_what_a_pattern_covers_it_matches(pattern, other, name):
    if covers(pattern, other) and matches(other, name):
        assert matches(pattern, name)


@pytest.mark.parametrize(
    ("pattern", "other", "expected"),
    [
        (">", "A.>", True),
        ("A.>", "A.B", True),
        ("A.>", "A.*.C", True),
        ("A.>", "A.>", True),
        ("A.*", "A.*", True),
        ("A.*", "A.>", False),
        ("A.*.>", "A.>", False),
        ("A.B", "A.*", False),
        ("A.>", ">", False),
        ("A.>", "*.B", False),
    ],
)
def test_a_pattern_covers_those_whose_names_it_all_matches(pattern, other, expected):
    assert covers(pattern, other) is expected


@settings(max_examples=200, deadline=None)
@given(ELEMENTS, ELEMENTS, CONCRETE)
def test_what_two_patterns_have_in_common_is_what_both_match(pattern, other, name):
    common = intersection(pattern, other)
    assert (common is not None and matches(common, name)) is (matches(pattern, name) and matches(other, name))


@pytest.mark.parametrize(
    ("pattern", "other", "expected"),
    [
        ("A.>", "*.B", "A.B"),
        ("A.>", "A.B.>", "A.B.>"),
        (">", "A.*", "A.*"),
        ("A.>", "A", "A"),
        ("*.B.*", "A.>", "A.B.*"),
        ("A.*", "*.B.C", None),
        ("A.*", "A", None),
        ("A.B", "A.C", None),
    ],
)
def test_the_common_part_of_two_patterns_is_a_pattern_or_a_name(pattern, other, expected):
    assert intersection(pattern, other) == intersection(other, pattern) == expected


def test_patterns_are_ordered_by_how_specific_they_are():
    ordered = [">", "A.>", "A.*.>", "A.*.C", "A.B.>", "A.B.*.*.C.D", "A.B.C.D.C.D"]
    assert sorted(set(ordered), key=specificity) == ordered
