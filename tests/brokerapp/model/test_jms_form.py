"""The JMS form of messages: kinds and types of properties, as the hidden header line carries them."""

import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brokerapp.model.jms.form import JmsForm, JmsKind, jms_form_of
from brokerapp.model.jms.properties import (
    RESERVED_NAMES,
    PropertyType,
    property_header,
    property_name,
    property_text,
    property_value,
)
from brokerapp.model.message import Message

forms = st.builds(
    JmsForm,
    st.sampled_from(JmsKind),
    st.dictionaries(st.text(min_size=1, max_size=20), st.sampled_from(PropertyType), max_size=5),
    st.booleans(),
)


@given(forms)
def test_a_form_is_read_back_from_its_header_as_it_was(form):
    assert JmsForm.parse(form.header_value()) == form


@given(forms)
def test_a_message_tells_the_form_that_its_head_holds(form):
    message = Message("ID:a:1", f"message-id:ID\\ca\\c1\n{form.header_line()}".encode(), b"")
    assert jms_form_of(message) == form


def test_a_message_of_a_stomp_client_has_no_form():
    assert jms_form_of(Message("ID:a:1", b"message-id:ID\\ca\\c1\nn:5\n", b"")) is None


@given(st.text(min_size=1) | st.sampled_from(sorted(RESERVED_NAMES)))
def test_a_property_keeps_its_name_whatever_stomp_takes_it_for(name):
    assert property_header(name) not in RESERVED_NAMES
    assert property_name(property_header(name)) == name


@pytest.mark.parametrize("header", sorted(RESERVED_NAMES))
def test_a_header_of_stomp_is_no_property(header):
    assert property_name(header) is None


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0.0"), (1e7, "1.0E7"), (0.001, "0.001"), (1.5e-4, "1.5E-4"), (100.0, "100.0"), (-3.25, "-3.25"),
     (123456789.125, "1.23456789125E8"), (1e300, "1.0E300"), (math.inf, "Infinity"), (math.nan, "NaN")],
)  # fmt: skip
def test_a_double_is_written_as_java_writes_it(value, text):
    assert property_text(PropertyType.DOUBLE, value) == text


@given(st.floats(allow_nan=False))
def test_a_double_is_read_back_as_it_was(value):
    assert property_value(PropertyType.DOUBLE, property_text(PropertyType.DOUBLE, value)) == value


@given(st.floats(width=32, allow_nan=False))
def test_a_float_of_32_bits_is_read_back_as_it_was(value):
    read = property_value(PropertyType.FLOAT, property_text(PropertyType.FLOAT, value))
    assert struct.pack(">f", read) == struct.pack(">f", value)


def test_a_text_that_is_none_of_its_type_stays_a_text():
    assert property_value(PropertyType.INT, "five") == "five"
