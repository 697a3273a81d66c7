"""Variations of orders: each differs from the base in what its name says, and in nothing else."""

from itertools import pairwise

import pytest

from benchmarks.comparison.rounds import Measurement
from benchmarks.generator.load import Outcome
from benchmarks.generator.traffic import Block, Traffic, split_anywhere
from benchmarks.scenarios.messages import Orders
from benchmarks.scenarios.variations import BASE, VARIATIONS, MixedSizes, Varied
from benchmarks.variations import variation_rows

NUMBERS = range(10_000_000, 10_000_300)


def data(scenario):
    return b"".join(block.data for block in Traffic(scenario).blocks(0, 300))


def variation(name):
    return next(each for each in VARIATIONS if each.name == name)


def test_headers_come_in_many_orders_and_are_the_same():
    varied = [Varied(reorders=True).headers(number) for number in NUMBERS]
    assert len({tuple(each) for each in varied}) > 250
    assert varied == [Orders().headers(number) for number in NUMBERS]


def test_one_header_more_in_every_third_message_or_another_one_fewer_in_each():
    plain = Orders().headers(NUMBERS[0])
    assert [len(Varied(adds=True).headers(number)) - len(plain) for number in NUMBERS] == [
        int(number % 3 == 0) for number in NUMBERS
    ]
    left = [set(plain) - set(Varied(leaves_out=True).headers(number)) for number in NUMBERS]
    assert all(len(each) == 1 for each in left)
    assert set().union(*left) == set(plain)


def test_mixed_sizes_have_as_many_bytes_as_orders():
    lengths = [
        [len(kind.body(number)) for number in range(10_000_000, 10_010_090)] for kind in (Orders(), MixedSizes())
    ]
    orders, mixed = map(sum, lengths)
    assert abs(mixed / orders - 1) < 0.05
    assert max(lengths[1]) > 10_000


def test_splits_are_the_same_bytes_with_writes_that_end_within_frames():
    assert data(variation("splits")) == data(BASE)
    blocks = Traffic(variation("splits")).blocks(0, 300)
    assert [each.messages for each in blocks] == [50] * 6
    assert not any(each.data.endswith(b"\0") for each in blocks[:-1])
    assert blocks[-1].data.endswith(b"\0")


def test_a_split_block_keeps_its_own_frames_but_the_last():
    first, second = split_anywhere([Block(b"A\n\n\0B\n\n\0", 2), Block(b"C\n\n\0", 1)])
    assert first.data.startswith(b"A\n\n\0B")
    assert first.data + second.data == b"A\n\n\0B\n\n\0C\n\n\0"


def test_another_queue_in_each_message_divides_them_as_the_base_does():
    queues = [[each.route.destination(number) for number in NUMBERS] for each in (BASE, variation("destinations"))]
    assert sorted(queues[0]) == sorted(queues[1])
    changes = [sum(one != next_one for one, next_one in pairwise(each)) for each in queues]
    assert changes == [5, 299]


@pytest.mark.parametrize(("cpu", "times", "verdict"), [(10.4, "1.04", "reached"), (12, "1.20", "missed")])
def test_a_variation_is_compared_with_the_base_of_its_round(cpu, times, verdict):
    def runs(*of_rounds):
        return [Measurement(Outcome(100, 1.0, 0.0), each * 100 / 1e6, 0) for each in of_rounds]

    rows = variation_rows({BASE.title: runs(10, 20, 30), "varied": runs(cpu, 2 * cpu, 3 * cpu)})
    assert rows[0][-2:] == ("1.00", "")
    assert rows[1][-2:] == (times, verdict)
