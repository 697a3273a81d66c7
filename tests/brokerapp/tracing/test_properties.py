"""Test that properties extracted by column equal those of Message.headers."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from brokerapp.model.jms.form import JMS_HEADER, TRANSACTION_HEADER, JmsForm, JmsKind
from brokerapp.model.message import Message, escape
from brokerapp.tracing.properties import (
    MAX_PROPERTIES,
    MAX_VALUE,
    NOT_RECORDED,
    NUMBER,
    property_maps,
)
from brokerapp.tracing.recorder import MAX_CONTEXT, MAX_HEAD, limit_head


def head(*pairs: tuple[str, str]) -> bytes:
    lines = (("message-id", "ID:a:1"), *pairs)
    return "".join(f"{escape(name)}:{escape(value)}\n" for name, value in lines).encode()


def texts_and_numbers(*heads: bytes) -> list[tuple[dict, dict]]:
    texts, numbers = property_maps(heads)
    return [(dict(text), dict(number)) for text, number in zip(texts.to_pylist(), numbers.to_pylist(), strict=True)]


NUMBERS = [
    ("5", 5.0), ("007", 7.0), ("-3.5", -3.5), ("+2", 2.0), ("1e3", 1000.0), ("9999999999", 9999999999.0),
    ("2.", 2.0), (".5", 0.5), ("1E-2", 0.01),
    ("", None), (" 5", None), ("5 ", None), ("5d", None), ("0x10", None), ("1_000", None), ("nan", None), ("inf", None),
    ("٣", None), ("5\n", None), ("--1", None), ("e3", None), (".", None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "number"), NUMBERS)
def test_text_that_is_a_decimal_number_is_recorded_as_one_beside_the_text(text, number):
    [(texts, numbers)] = texts_and_numbers(head(("n", text)))
    assert texts == {"n": text}
    assert numbers == ({} if number is None else {"n": number})


def test_a_number_is_what_a_selector_takes_for_one():
    values = pytest.importorskip("brokerapp.selectors.values")
    assert rf"\A{values.DECIMAL_NUMBER}\z" == NUMBER


def test_numbers_of_any_form_are_read_together():
    forms = {text: number for text, number in NUMBERS if number is not None}
    [(_, numbers)] = texts_and_numbers(head(*((f"p{text}", text) for text in forms)))
    assert numbers == {f"p{text}": number for text, number in forms.items()}


names = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), min_size=1, max_size=6)
values = st.one_of(names, st.integers().map(str), st.sampled_from(["\\", ":", "a\nb", "c\\nd", "\\\\n", "é:\r"]))
heads = st.lists(st.lists(st.tuples(names, values), max_size=6), min_size=1, max_size=8)


# Making examples is measured in elapsed time: on a busy machine that says nothing of the test.
@settings(suppress_health_check=[HealthCheck.too_slow])
@given(heads)
def test_properties_by_column_equal_the_headers_of_each_message(batch):
    made = [head(*pairs) for pairs in batch]
    expected = []
    for each in made:
        headers = Message("ID:a:1", each, b"").headers
        expected.append({name: value for name, value in headers.items() if name not in NOT_RECORDED})
    assert [texts for texts, _ in texts_and_numbers(*made)] == expected


def test_of_a_name_given_twice_the_last_is_recorded_as_in_the_headers():
    made = head(("a", "1"), ("b", "2"), ("a", "x"))
    assert texts_and_numbers(made) == [({"b": "2", "a": "x"}, {"b": 2.0})]


def test_bytes_that_are_no_utf_8_are_replaced_and_the_neighbours_stay_right():
    wrong = b"message-id:1\na:\xff\n"
    assert texts_and_numbers(head(("a", "1")), wrong, head(("a", "2"))) == [
        ({"a": "1"}, {"a": 1.0}), ({"a": "�"}, {}), ({"a": "2"}, {"a": 2.0}),
    ]  # fmt: skip


def test_the_types_of_jms_properties_are_recorded_however_long():
    form = JmsForm(JmsKind.TEXT, dict.fromkeys((f"property{number}" for number in range(MAX_VALUE // 8)), "i"))
    [(texts, _)] = texts_and_numbers(head((JMS_HEADER, form.header_value()), ("long", "x" * 2 * MAX_VALUE)))
    assert texts == {JMS_HEADER: form.header_value(), "long": "x" * MAX_VALUE}


def test_the_transaction_of_a_jms_message_is_not_recorded_with_its_properties():
    assert texts_and_numbers(head((TRANSACTION_HEADER, "c:1"), ("n", "5"))) == [({"n": "5"}, {"n": 5.0})]


def test_a_message_with_too_many_properties_keeps_the_first():
    many = head(*((f"p{number}", "x") for number in range(MAX_PROPERTIES + 5)))
    [(texts, _), (other, _)] = texts_and_numbers(many, head(("a", "1")))
    assert list(texts) == [f"p{number}" for number in range(MAX_PROPERTIES)]
    assert other == {"a": "1"}


def test_a_long_value_is_cut():
    [(texts, _)] = texts_and_numbers(head(("a", "x" * (MAX_VALUE + 1))))
    assert texts == {"a": "x" * MAX_VALUE}


def test_a_long_head_is_cut_at_a_line():
    long = head(*((f"p{number}", "x" * 500) for number in range(20)))
    kept = limit_head(long)
    assert len(kept) <= MAX_HEAD
    assert long.startswith(kept)
    assert kept.endswith(b"\n")
    assert len(kept) > MAX_HEAD - 510


@pytest.mark.parametrize("place", [0, 5, 7, 8, 9, 20])
def test_a_long_head_keeps_its_trace_context_wherever_it_stands(place):
    lines = [(f"p{number}", "x" * 500) for number in range(20)]
    lines[place:place] = [("traceparent", "00-1"), ("tracestate", "a=1")]
    [(texts, _)] = texts_and_numbers(limit_head(head(*lines)))
    assert (texts["traceparent"], texts["tracestate"]) == ("00-1", "a=1")


def test_a_trace_context_that_is_too_long_is_cut_off():
    lines = [*((f"p{number}", "x" * 500) for number in range(20)), ("tracestate", "a" * MAX_CONTEXT), ("z", "y")]
    assert len(limit_head(head(*lines))) <= MAX_HEAD


def test_heads_with_nothing_but_the_message_id_have_no_properties():
    assert texts_and_numbers(head(), head()) == [({}, {}), ({}, {})]
