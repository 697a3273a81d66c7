"""Test names of beans and patterns of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.exporters.jolokia.object_names import MalformedName, NamePattern, ObjectName, encoded
from console.exporters.jolokia.request_path import join, split, split_decoded

QUEUE = ObjectName(
    "org.apache.activemq",
    {"type": "Broker", "brokerName": "localhost", "destinationType": "Queue", "destinationName": "Orders.In"},
)


def test_the_canonical_form_sorts_keys_and_the_other_keeps_them():
    assert QUEUE.canonical == (
        "org.apache.activemq:brokerName=localhost,destinationName=Orders.In,destinationType=Queue,type=Broker"
    )
    assert str(QUEUE).startswith("org.apache.activemq:type=Broker,brokerName=localhost,")


@pytest.mark.parametrize(
    ("pattern", "matches"),
    [
        ("org.apache.activemq:destinationName=Orders.In,type=Broker,destinationType=Queue,brokerName=localhost", True),
        ("org.apache.activemq:type=Broker,brokerName=localhost", False),
        ("org.apache.activemq:type=Broker,*", True),
        ("org.apache.activemq:*", True),
        ("org.apache.*:type=Broker,brokerName=*,destinationType=Queue,destinationName=Orders.*", True),
        ("org.apache.activemq:type=Broker,brokerName=l?calhost,destinationType=Queue,destinationName=*", True),
        ("org.apache.activemq:type=Broker,brokerName=*,destinationType=Topic,destinationName=*", False),
        ("org.apache.activemq:type=Broker,endpoint=Consumer,*", False),
        ("java.lang:type=Memory", False),
        ("org.apache.activemq:type=Broker,brokerName=localhost,destinationType=Queue,destinationName=OrdersXIn", False),
    ],
)
def test_what_a_pattern_matches(pattern, matches):
    assert NamePattern.parse(pattern).matches(QUEUE) is matches


@pytest.mark.parametrize("text", ["", "a", "a:", "a:b", "a:b=c,b=d", "a:b=c,,d=e", "a:=c"])
def test_what_names_no_bean_is_refused_by_name(text):
    with pytest.raises(MalformedName, match="not the name of a bean"):
        NamePattern.parse(text)


def test_a_quoted_value_may_hold_what_else_would_end_it():
    pattern = NamePattern.parse('d:name="a,b=*",type=x')
    assert pattern.keys == {"name": '"a,b=*"', "type": "x"}
    assert not pattern.is_pattern


def test_names_are_encoded_as_activemq_does():
    assert encoded("a:b,c'd\"e?f=g*h/i.j>k") == "a_b_c_d_e&qe;f&amp;g&ast;h/i.j>k"


@pytest.mark.parametrize(
    ("raw", "parts"),
    [
        ("", []),
        ("/", []),
        ("/version", ["version"]),
        ("/read/a:b=c/X", ["read", "a:b=c", "X"]),
        ("/read/a:b=Orders!.In/X", ["read", "a:b=Orders.In", "X"]),
        ("/read/a:b=c!/d/X", ["read", "a:b=c/d", "X"]),
        ("/read/a:b=c%2Fd/X", ["read", "a:b=c/d", "X"]),
        ("/read/a:b=c!%2Fd/X", ["read", "a:b=c/d", "X"]),
        ("/read/a!!/b", ["read", "a!", "b"]),
        ("/read/a%21%21/b", ["read", "a!", "b"]),
        ("/read/%22x%22!/%20y/", ["read", '"x"/ y']),
        ("/read/a:b=%C3%A9%25,c=*", ["read", "a:b=é%,c=*"]),
    ],
)
def test_the_path_is_taken_apart(raw, parts):
    assert split(raw) == parts


@given(st.lists(st.text('/!".:,=*?%é字 ab\\~', min_size=1), min_size=1))
def test_every_name_survives_the_path(parts):
    assert split(join(parts)) == parts


def test_a_decoded_path_is_taken_apart_as_well():
    assert split_decoded("read/a:b=c!/d%2F/X") == ["read", "a:b=c/d%2F", "X"]
