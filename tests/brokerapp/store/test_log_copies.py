"""Test which of several copies of a log counts as the newest."""

import pytest

from brokerapp.store.shards.copies import LogCopy, newest_copy


@pytest.mark.parametrize(
    ("copies", "last_moves", "recorded", "newest"),
    [
        ({1: "4"}, {0: 0, 1: 4}, 0, 1),  # the only one, whatever is recorded
        ({1: "4?"}, {0: 4, 1: 4}, 0, 1),
        ({0: "0", 1: "4"}, {0: 4, 1: 4}, 1, 1),  # left in the source
        ({0: "0", 1: "4"}, {0: 3, 1: 4}, 0, 1),  # shard 0 was restored to a state before the move
        ({0: "6", 1: "5"}, {0: 6, 1: 6}, 0, 0),  # made anew in shard 0 after it had moved there
        ({0: "0", 1: "4?"}, {0: 4, 1: 4}, 0, 0),  # given up
        ({0: "0", 1: "4?"}, {0: 4, 1: 4}, None, 0),
        ({0: "0", 1: "4?"}, {0: 4, 1: 4}, 1, 1),  # done, and its node ended at that moment
        ({0: "0", 1: "4?"}, {0: 3, 1: 4}, 0, None),  # shard 0 may lack what the other copy has
        ({0: "0", 1: "4?"}, {0: 3, 1: 4}, 1, None),  # recorded by an earlier move
        ({0: "0", 1: "0"}, {0: 0, 1: 0}, 0, None),
        ({1: "3?", 2: "4?"}, {0: 4, 1: 3, 2: 4}, 0, None),  # their source is gone
        ({0: "0", 1: "2", 2: "3?"}, {0: 3, 1: 3, 2: 3}, 1, 1),
    ],
)
def test_a_copy_is_the_newest_only_where_numbers_prove_it(copies, last_moves, recorded, newest):
    parsed = {shard: LogCopy.parse(text) for shard, text in copies.items()}
    assert {shard: str(copy) for shard, copy in parsed.items()} == copies
    assert newest_copy(parsed, last_moves, recorded) == newest
