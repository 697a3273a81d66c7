"""The ledger of a run: what it expects, and which faults it finds."""

from benchmarks.generator.ledger import expected, faults
from benchmarks.scenarios.messages import first_number

FIRST, SECOND = first_number(0), first_number(1)


def test_a_group_is_to_get_what_it_takes_of_what_all_producers_sent():
    sent = [range(FIRST, FIRST + 4), range(SECOND, SECOND + 4)]
    assert expected(sent, lambda number: number % 2 == 0) == [FIRST, FIRST + 2, SECOND, SECOND + 2]


def test_messages_shared_by_consumers_and_mixed_between_producers_are_right():
    received = [[FIRST, SECOND, FIRST + 2], [SECOND + 1, FIRST + 1]]
    assert faults([FIRST, FIRST + 1, FIRST + 2, SECOND, SECOND + 1], received, is_ordered=True) == []


def test_what_is_missing_or_came_twice_or_to_the_wrong_consumer_is_told_with_the_first_of_each():
    numbers = [FIRST, FIRST + 1, FIRST + 2]
    assert faults(numbers, [[FIRST]], is_ordered=True) == [f"2 missing, the first is {FIRST + 1}"]
    assert faults(numbers, [numbers, [FIRST + 2]], is_ordered=True) == [f"1 received twice, the first is {FIRST + 2}"]
    assert faults(numbers, [[*numbers, SECOND]], is_ordered=True) == [f"1 not for it, the first is {SECOND}"]


def test_a_message_that_one_consumer_got_before_an_earlier_one_of_its_producer_is_a_fault_where_order_is_promised():
    numbers, received = [FIRST, FIRST + 1], [[FIRST + 1, FIRST]]
    assert faults(numbers, received, is_ordered=True) == [f"{FIRST + 1} before {FIRST}"]
    assert faults(numbers, received, is_ordered=False) == []
