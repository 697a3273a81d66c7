"""Test where families are placed, and that suggested moves are few and make the load even."""

import subprocess
import sys
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brokerapp.engine.sharding.families import TEMPORARY_FAMILY
from brokerapp.engine.sharding.placement import EVEN_ENOUGH, MAX_MOVES, WORTH_MOVING, Move, place, suggest_moves

FAMILIES = [f"queue://orders.{number}" for number in range(4000)]


def test_a_family_stays_where_it_is_assigned_though_that_shard_drains():
    assert place("queue://a", [0, 1], {"queue://a": 7}) == 7


def test_temporary_destinations_live_in_the_first_shard_always():
    assert place(TEMPORARY_FAMILY, [1, 2], {TEMPORARY_FAMILY: 2}) == 0


def test_a_family_has_no_place_where_no_shard_is_serving():
    with pytest.raises(ValueError, match="no shard is serving, so the family 'queue://a' has no place"):
        place("queue://a", [], {})


def test_families_are_spread_evenly():
    found = Counter(place(each, range(8), {}) for each in FAMILIES)
    assert max(found.values()) < 1.15 * len(FAMILIES) / 8 < 1.3 * min(found.values())


def test_another_process_places_families_alike():
    program = (
        "from brokerapp.engine.sharding.placement import place\n"
        "print([place(f'queue://orders.{number}', [3, 0, 1], {}) for number in range(20)])"
    )
    output = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert output.strip() == str([place(each, {0, 1, 3}, {}) for each in FAMILIES[:20]])


@settings(deadline=None)
@given(st.sets(st.integers(0, 100), min_size=1, max_size=10), st.integers(0, 100))
def test_a_shard_that_is_added_takes_families_and_leaves_the_others_where_they_are(serving, added):
    for family in FAMILIES[:50]:
        assert place(family, serving | {added}, {}) in {place(family, serving, {}), added}


def loads_after(loads, where, moves):
    """Loads of the shards when the moves are done."""
    found, now = Counter(), {**where, **{each.family: each.target for each in moves}}
    for family, load in loads.items():
        found[now[family]] += load
    return found


def test_the_most_loaded_shard_gives_the_lightest_family_that_is_enough():
    loads = {"a": 40, "b": 25, "c": 10, "d": 4, "e": 40}
    where = {"a": 0, "b": 0, "c": 0, "d": 0, "e": 1}
    assert suggest_moves(loads, where, [0, 1]) == [Move("c", 0, 1)]


def test_an_even_load_needs_no_moves():
    assert suggest_moves({"a": 10, "b": 11}, {"a": 0, "b": 1}, [0, 1]) == []


def test_a_family_that_is_too_large_for_every_shard_stays_and_the_others_leave_it_alone():
    moves = suggest_moves({"a": 100, "b": 10, "c": 1}, {"a": 0, "b": 0, "c": 1}, [0, 1])
    assert moves == [Move("b", 0, 1)]


def test_light_families_stay_beside_one_that_is_too_large_for_every_shard():
    loads = {"a": 100, **dict.fromkeys(FAMILIES[:20], 0.5), "b": 10}
    assert suggest_moves(loads, {**dict.fromkeys(loads, 0), "b": 1}, [0, 1]) == []


def test_all_families_leave_a_shard_that_is_not_serving():
    loads = {"a": 5, "b": 3, "c": 2, "d": 4}
    moves = suggest_moves(loads, {"a": 2, "b": 2, "c": 1, "d": 0}, [0, 1])
    assert moves == [Move("a", 2, 1), Move("b", 2, 0)]


def test_temporary_destinations_count_where_they_are_and_do_not_move():
    loads = {TEMPORARY_FAMILY: 50, "a": 20, "b": 30}
    assert suggest_moves(loads, {TEMPORARY_FAMILY: 0, "a": 0, "b": 1}, [0, 1]) == [Move("a", 0, 1)]


def test_no_more_moves_are_suggested_than_operators_read():
    loads = dict.fromkeys(FAMILIES[:1000], 1.0)
    assert len(suggest_moves(loads, dict.fromkeys(loads, 0), range(4))) == MAX_MOVES


def test_no_moves_are_suggested_where_no_shard_is_serving():
    assert suggest_moves({"a": 1}, {"a": 0}, []) == []


@given(
    st.dictionaries(st.sampled_from(FAMILIES[:40]), st.tuples(st.integers(0, 100), st.integers(0, 4)), max_size=40),
    st.sets(st.integers(0, 3), min_size=1),
)
def test_moves_never_make_the_load_less_even_and_name_each_family_once(families, serving):
    loads = {family: load for family, (load, _) in families.items()}
    where = {family: shard for family, (_, shard) in families.items()}
    moves = suggest_moves(loads, where, serving)
    assert len({each.family for each in moves}) == len(moves)
    assert all(each.source == where[each.family] != each.target and each.target in serving for each in moves)
    assert moves == suggest_moves(dict(reversed(loads.items())), where, sorted(serving, reverse=True))
    after = loads_after(loads, where, moves)
    assert set(after) <= serving
    mean = sum(loads.values()) / len(serving)
    overloaded = [shard for shard in after if after[shard] > EVEN_ENOUGH * mean]
    for shard in overloaded:  # nothing that is left there fits elsewhere
        stays = [each for each in loads if where[each] == shard and each not in {move.family for move in moves}]
        least = min(after[other] for other in serving)
        is_hopeless = any(loads[each] > EVEN_ENOUGH * mean for each in stays)
        worth = WORTH_MOVING * mean if is_hopeless else 0
        assert all(loads[each] <= worth or least + loads[each] > EVEN_ENOUGH * mean for each in stays)
