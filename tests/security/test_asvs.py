"""The checklist of ASVS has every requirement of levels 1 and 2, and each proof that it names exists."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache

from brokerapp.system.environment import PROJECT

#: Sections of ASVS 4.0.3 with the level of each of their requirements in order; `-`: of level 3, or deleted.
SECTIONS = {
    "1.1": "2222222", "1.2": "2222", "1.4": "2--22", "1.5": "2222", "1.6": "2222", "1.7": "22", "1.8": "22",
    "1.9": "22", "1.10": "2", "1.11": "22-", "1.12": "-2", "1.14": "222222",
    "2.1": "111111111111", "2.2": "111----", "2.3": "122", "2.4": "22222", "2.5": "1111112", "2.6": "222",
    "2.7": "111122", "2.8": "1222222", "2.9": "222", "2.10": "2222",
    "3.1": "1", "3.2": "1112", "3.3": "1122", "3.4": "11111", "3.5": "222", "3.6": "--", "3.7": "1",
    "4.1": "111-1", "4.2": "11", "4.3": "112",
    "5.1": "11111", "5.2": "11111111", "5.3": "1111111111", "5.4": "222", "5.5": "1111",
    "6.1": "222", "6.2": "122222--", "6.3": "22-", "6.4": "22",
    "7.1": "1122", "7.2": "22", "7.3": "2-22", "7.4": "122",
    "8.1": "2222--", "8.2": "111", "8.3": "11112222",
    "9.1": "111", "9.2": "2222-",
    "10.1": "-", "10.2": "22----", "10.3": "111",
    "11.1": "11111222",
    "12.1": "122", "12.2": "2", "12.3": "111112", "12.4": "11", "12.5": "11", "12.6": "1",
    "13.1": "1-122", "13.2": "111-22", "13.3": "12", "13.4": "22",
    "14.1": "2222-", "14.2": "111222", "14.3": "-11", "14.4": "1111111", "14.5": "1112",
}  # fmt: skip
STATES = {"met", "met by deployment", "does not apply", "not met"}
_TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
_ROW = re.compile(r"^\| (\d+\.\d+\.\d+) \| (\d) \| (.+?) \| ([a-z ]+) \| (.+) \|$", re.MULTILINE)


@cache
def checklist() -> tuple[tuple[str, str, str, str, str], ...]:
    """Return number, level, requirement, state and proof of each row."""
    return tuple(_ROW.findall((PROJECT / "docs/asvs.md").read_text()))


def test_each_requirement_of_levels_1_and_2_has_one_row_in_order():
    wanted = [
        (f"{section}.{number}", level)
        for section, levels in SECTIONS.items()
        for number, level in enumerate(levels, start=1)
        if level != "-"
    ]
    assert len(wanted) == 259
    assert [(number, level) for number, level, *_ in checklist()] == wanted


def test_each_row_has_a_known_state_and_the_table_of_states_counts_them():
    states = Counter(state for *_, state, _ in checklist())
    assert set(states) == STATES
    counted = re.findall(r"^\| ([a-z ]+) \| (\d+) \| \D", (PROJECT / "docs/asvs.md").read_text(), re.MULTILINE)
    assert {state: int(number) for state, number in counted} == states


def test_each_test_that_the_checklist_names_exists():
    named = {found for *_, proof in checklist() for found in _TEST.findall(proof)}
    assert len(named) > 100
    files = {path: (PROJECT / path).read_text() if (PROJECT / path).exists() else "" for path, _ in named}
    assert sorted((path, name) for path, name in named if f"def {name}(" not in files[path]) == []


def test_what_is_not_met_or_does_not_apply_has_a_reason_in_words():
    unexplained = [
        number
        for number, _, _, state, proof in checklist()
        if state != "met" and not re.search(r"\w+\W+\w+", _TEST.sub("", proof))
    ]
    assert unexplained == []
