"""Messages the broker writes as JSON, in the XML that says the same."""

from brokerapp.message import Message
from brokerapp.transformations import as_wanted, error_in

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
    for asked in ("jms-json", "jms-advisory-json", "jms-byte", "nonsense", ""):
        assert as_wanted(message, asked) is message


def test_what_the_broker_did_not_write_stays_as_it_is():
    for head, body in (
        (b"message-id:1\n", BODY),
        (b"message-id:1\ntransformation:jms-map-xml\n", BODY),
        (HEAD, b"no json"),
        (HEAD, b"[1]"),
        (HEAD, b'{"a":1,"b":2}'),
        (HEAD, b"\xff"),
    ):
        message = Message("1", head, body)
        assert as_wanted(message, "jms-xml") is message


def test_text_announced_as_json_that_is_none_is_found_out():
    for form in ("jms-json", "jms-map-json", "jms-object-json", "jms-advisory-json"):
        assert error_in(form, b'{"map":{"entry":[]}}') is None
        assert error_in(form, b"<map/>").startswith(f"{form}: the body is not JSON")
        assert error_in(form, b"[" * 100_000) is not None


def test_nothing_is_said_of_other_text():
    for form in ("jms-xml", "jms-map-xml", "jms-byte", "nobody knows this", ""):
        assert error_in(form, b"<map") is None
