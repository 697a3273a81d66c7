"""Test the simulation of families over shards with a small instance."""

import pytest

from benchmarks.shards.simulation import HEAD, main, simulate
from brokerapp.engine.sharding.placement import EVEN_ENOUGH


def test_moves_make_a_skewed_load_as_even_as_they_promise():
    found = simulate(shards=16, families=2000, exponent=0.8, seed=3)
    assert found.largest_family < EVEN_ENOUGH < found.by_hashing
    assert found.after_moves <= EVEN_ENOUGH
    assert 0 < found.moves < 40
    assert found.moved_load < 0.1


def test_a_shard_is_never_less_loaded_than_the_largest_family():
    found = simulate(shards=16, families=200, exponent=1.0, seed=3)
    assert found.largest_family > EVEN_ENOUGH
    assert found.largest_family <= found.after_moves < 1.2 * found.largest_family


def test_a_new_shard_takes_its_share_of_the_families():
    assert simulate(shards=4, families=2000, exponent=0.8, seed=3).joined == pytest.approx(1 / 5, abs=0.03)


def test_the_same_seed_gives_the_same_table(capsys):
    tables = []
    for _ in range(2):
        main(["--families", "100", "--seed", "5"])
        tables.append(capsys.readouterr().out)
    assert tables[0] == tables[1]
    assert all(each in tables[0] for each in HEAD)
