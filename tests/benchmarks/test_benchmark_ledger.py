"""The ledger of a run: what it expects, and which faults it finds."""

from benchmarks.generator.ledger import expected, faults, sent_in_order
from benchmarks.scenarios.messages import first_number
from benchmarks.scenarios.routes import Queue, WildcardTopics

FIRST, SECOND = first_number(0), first_number(1)
ORDER, ORDER_OF_EACH_TOPIC = sent_in_order(Queue()), sent_in_order(WildcardTopics(2, 1))


def test_a_group_is_to_get_what_it_takes_of_what_all_producers_sent():
    sent = [range(FIRST, FIRST + 4), range(SECOND, SECOND + 4)]
    assert expected(sent, lambda number: number % 2 == 0) == [FIRST, FIRST + 2, SECOND, SECOND + 2]


def test_messages_shared_by_consumers_and_mixed_between_producers_are_right():
    received = [[FIRST, SECOND, FIRST + 2], [SECOND + 1, FIRST + 1]]
    assert faults([FIRST, FIRST + 1, FIRST + 2, SECOND, SECOND + 1], received, ORDER) == []


def test_what_is_missing_or_came_twice_or_to_the_wrong_consumer_is_told_with_the_first_of_each():
    numbers = [FIRST, FIRST + 1, FIRST + 2]
    assert faults(numbers, [[FIRST]], ORDER) == [f"2 missing, the first is {FIRST + 1}"]
    assert faults(numbers, [numbers, [FIRST + 2]], ORDER) == [f"1 received twice, the first is {FIRST + 2}"]
    assert faults(numbers, [[*numbers, SECOND]], ORDER) == [f"1 not for it, the first is {SECOND}"]


def test_a_message_that_one_consumer_got_before_an_earlier_one_of_its_producer_is_a_fault_where_order_is_promised():
    numbers, received = [FIRST, FIRST + 1], [[FIRST + 1, FIRST]]
    assert faults(numbers, received, ORDER) == [f"{FIRST + 1} came before {FIRST}"]
    assert faults(numbers, received) == []


def test_order_is_promised_for_each_destination_apart():
    numbers = [FIRST, FIRST + 1, FIRST + 2]
    assert faults(numbers, [[FIRST + 1, FIRST, FIRST + 2]], ORDER_OF_EACH_TOPIC) == []
    assert faults(numbers, [[FIRST + 1, FIRST + 2, FIRST]], ORDER_OF_EACH_TOPIC) == [f"{FIRST + 2} came before {FIRST}"]


def test_a_message_group_that_came_to_two_consumers_is_a_fault():
    numbers = [FIRST, FIRST + 1, FIRST + 2]
    received = [[FIRST, FIRST + 1], [FIRST + 2]]
    assert faults(numbers, received, group_of=lambda number: int(number == FIRST + 2)) == []
    assert faults(numbers, received, group_of=lambda number: number % 2) == [
        "1 message groups came to several consumers, the first is 0"
    ]
