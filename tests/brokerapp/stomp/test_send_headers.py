"""Test how the headers of SEND are interpreted."""

import pytest

from brokerapp.stomp.send_headers import apply_jms_names, properties_of


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("queue://A", "/queue/A"),
        ("topic://A.B", "/topic/A.B"),
        ("/queue/A", "/queue/A"),
        ("nothing://A", "nothing://A"),
        ("just words", "just words"),
    ],
)
def test_a_reply_to_under_its_jms_name_comes_as_stomp_writes_it(given, expected):
    assert apply_jms_names({"JMSReplyTo": given, "a": "b"}) == {"reply-to": expected, "a": "b"}


def test_what_the_sender_says_of_the_body_stays_a_property_that_selectors_see():
    assert properties_of({"destination": "/queue/A", "amq-msg-type": "text"}) == "amq-msg-type:text\n"
