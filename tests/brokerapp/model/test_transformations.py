"""Test conversion of messages to the format that a consumer requests, and of unreadable ones."""

import json

import pytest

from brokerapp.model.jms.transformations import MAX_READ_BYTES, as_wanted, find_error
from brokerapp.model.message import Message

HEAD = b"message-id:ID\\c1\ntransformation:jms-advisory-json\nx:1\n"
BODY = b'{"Info":{"@class":"A & B","n":1,"yes":true,"list":["<",""],"null":"","in":{"entry":[{"string":["k","v"]}]}}}'


def test_xml_has_attributes_repeated_elements_and_escapes():
    message = as_wanted(Message("ID:1", HEAD, BODY), "jms-xml")
    assert message.head == b"message-id:ID\\c1\ntransformation:jms-advisory-xml\nx:1\n"
    assert message.headers["transformation"] == "jms-advisory-xml"
    assert message.body.decode().splitlines() == [
        '<Info class="A &amp; B">',
        "  <n>1</n>",
        "  <yes>true</yes>",
        "  <list>&lt;</list>",
        "  <list></list>",
        "  <null/>",
        "  <in>",
        "    <entry>",
        "      <string>k</string>",
        "      <string>v</string>",
        "    </entry>",
        "  </in>",
        "</Info>",
    ]


def test_json_is_what_everybody_else_gets():
    message = Message("ID:1", HEAD, BODY)
    for asked in ("jms-json", "jms-advisory-json", "jms-byte", "nonsense", "nonsense-xml", ""):
        assert as_wanted(message, asked) is message


MAP_XML = """<?xml version="1.0"?>
<map> <!-- a comment -->
  <entry><string>s</string><string>5 &lt; &#233;</string></entry>
  <entry><string>n</string><int>-5</int></entry>
  <entry><string>d</string><double>1.5</double></entry>
  <entry><string>b</string><boolean>true</boolean></entry>
  <entry><string>x</string><null/></entry>
</map>"""
MAP_JSON = {
    "map": {
        "entry": [
            {"string": ["s", "5 < é"]}, {"string": "n", "int": -5}, {"string": "d", "double": 1.5},
            {"string": "b", "boolean": True}, {"string": "x", "null": ""},
        ]
    }
}  # fmt: skip


def message_of(form, body, more=b""):
    return Message("1", b"message-id:1\ntransformation:%b\n%b" % (form.encode(), more), body)


@pytest.mark.parametrize(
    ("asked", "named"), [("jms-json", "jms-map-json"), ("jms-map-json",) * 2, ("jms-object-json",) * 2]
)
def test_a_map_that_was_sent_as_xml_comes_as_json_to_who_asks_for_that(asked, named):
    message = as_wanted(message_of("jms-map-xml", MAP_XML.encode()), asked)
    assert message.headers["transformation"] == named
    assert json.loads(message.body) == MAP_JSON


def test_what_became_json_becomes_the_same_xml_again():
    converted = as_wanted(message_of("jms-map-xml", MAP_XML.encode()), "jms-json")
    again = as_wanted(as_wanted(converted, "jms-xml"), "jms-json")
    assert (again.head, again.body) == (converted.head, converted.body)


def test_an_object_has_attributes_in_both_syntaxes():
    xml, document = b'<a k="1"><b k="2">x</b><b/></a>', {"a": {"@k": "1", "b": [{"@k": "2", "$": "x"}, ""]}}
    converted = as_wanted(message_of("jms-object-xml", xml), "jms-json")
    assert converted.headers["transformation"] == "jms-object-json"
    assert json.loads(converted.body) == document
    lines = as_wanted(converted, "jms-xml").body.decode().split("\n")
    assert lines == ['<a k="1">', '  <b k="2">x</b>', "  <b></b>", "</a>"]


def test_a_body_that_is_counted_is_counted_again():
    message = message_of("jms-map-xml", b"<map></map>", b"content-length:11\nx:1\n")
    assert as_wanted(message, "jms-json").head.endswith(b"\ncontent-length:10\nx:1\n")


@pytest.mark.parametrize(
    ("form", "body"),
    [
        (None, BODY),
        ("nonsense", BODY),
        ("jms-map-json", b"no json"),
        ("jms-map-json", b"[1]"),
        ("jms-map-json", b'{"a":1,"b":2}'),
        ("jms-map-json", b"\xff"),
        ("jms-map-json", b'{"a b":1}'),
        ("jms-map-json", b'{"a":"\\u0000"}'),
        ("jms-map-json", b'{"a":{"@b c":"1"}}'),
        ("jms-map-json", b'{"a":' * 100_000),
        ("jms-map-json", b'{"a":' * 900 + b"1" + b"}" * 900),
        ("jms-map-json", b'{"a":"%b"}' % (b"x" * MAX_READ_BYTES)),
        ("jms-map-xml", b"<map"),
        ("jms-map-xml", b"<map><entry><string>a</string><int>x</int></entry></map>"),
        ("jms-map-xml", b"<a>" * 2_000 + b"</a>" * 2_000),
        ("jms-object-xml", b'<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>'),
    ],
)
def test_what_cannot_be_read_stays_as_it_was_sent(form, body):
    message = Message("1", b"message-id:1\n", body) if form is None else message_of(form, body)
    for asked in ("jms-xml", "jms-json"):
        assert as_wanted(message, asked) is message


def test_what_its_sender_was_told_cannot_be_read_stays_as_it_was_sent():
    message = message_of("jms-map-xml", b"<map/>", b"transformation-error:wrong\n")
    assert as_wanted(message, "jms-json") is message


def test_a_body_that_is_what_it_is_announced_to_be_is_no_error():
    for form in ("jms-map-json", "jms-object-json", "jms-advisory-json"):
        assert find_error(form, b'{"map":{"entry":[]}}') is None
    for form in ("jms-map-xml", "jms-object-xml"):
        assert find_error(form, MAP_XML.encode()) is None
    assert find_error("jms-map-json", json.dumps(MAP_JSON).encode()) is None
    assert find_error("jms-map-json", b'{"map":""}') is None
    assert find_error("jms-object-xml", b"<com.example.Order><id>1</id></com.example.Order>") is None


@pytest.mark.parametrize(
    ("form", "body", "says"),
    [
        ("jms-map-json", b"<map/>", "Expecting value"),
        ("jms-object-json", b"[" * 100_000, "recursion"),
        ("jms-object-json", b"{}", "not an object with one member"),
        ("jms-object-xml", b"Hello World", "it is not XML"),
        ("jms-object-xml", b"", "it is not XML"),
        ("jms-map-xml", b"<map", "it is not XML"),
        ("jms-map-xml", b"<string>a</string>", "string is not a map"),
        ("jms-map-xml", b"<map><x/></map>", "a map holds entries only"),
        ("jms-map-json", b'{"map":{"":1}}', "a map holds entries only"),
        ("jms-map-xml", b"<map><entry><string>a</string></entry></map>", "a name, which is a string, and a value"),
        ("jms-map-json", b'{"map":{"entry":{"int":5,"string":"n"}}}', "a name, which is a string, and a value"),
        ("jms-map-xml", b"<map><entry><string>a</string><int>x</int></entry></map>", "invalid literal"),
        ("jms-map-xml", b"<!DOCTYPE map><map/>", "a document type is declared"),
        ("jms-json", b"{}", "what a SUBSCRIBE asks for"),
        ("jms-xml", b"<a/>", "what a SUBSCRIBE asks for"),
    ],
)
def test_a_body_that_is_not_what_it_is_announced_to_be_is_found_out(form, body, says):
    told = find_error(form, body)
    assert told.startswith(form)
    assert says in told


def test_nothing_is_said_of_other_text():
    for form in ("jms-byte", "nobody knows this", ""):
        assert find_error(form, b"<map") is None
    assert find_error("jms-map-xml", b"<" * (MAX_READ_BYTES + 1)) is None
