"""Test the answers of the console's port to clients without TLS."""

from __future__ import annotations

from http import HTTPStatus

import pytest

from console.ops.serving.https_redirect import Answer, answer_to

HOSTS = ["console.example", "127.0.0.1"]


def answer(target="/queues/?q=a", method="GET", host=b"console.example:8000", port=None, **headers: bytes) -> Answer:
    fields = [(b"host", host), *((name.encode(), value) for name, value in headers.items())]
    return answer_to(method, target, fields, HOSTS, port)


@pytest.mark.parametrize(
    ("host", "port", "location"),
    [
        (b"console.example:8000", None, "https://console.example:8000/queues/?q=a"),
        (b"console.example", None, "https://console.example/queues/?q=a"),
        (b"console.example", 8443, "https://console.example:8443/queues/?q=a"),
        (b"console.example:80", 443, "https://console.example/queues/?q=a"),
    ],
)
def test_a_page_is_led_to_at_its_own_port_or_the_public_one(host, port, location):
    assert answer(host=host, port=port) == Answer(
        HTTPStatus.PERMANENT_REDIRECT, f"Use {location.removesuffix('/queues/?q=a')}/ instead.", location
    )


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({"method": "POST"}, HTTPStatus.FORBIDDEN),
        ({"authorization": b"Bearer secret"}, HTTPStatus.FORBIDDEN),
        ({"host": b"elsewhere.example"}, HTTPStatus.BAD_REQUEST),
        ({"host": b"console.example@elsewhere.example"}, HTTPStatus.BAD_REQUEST),
        ({"target": "http://elsewhere.example/"}, HTTPStatus.BAD_REQUEST),
        ({"target": "*", "method": "OPTIONS"}, HTTPStatus.BAD_REQUEST),
    ],
)
def test_nothing_else_is_led_anywhere(changed, status):
    assert (answer(**changed).status, answer(**changed).location) == (status, "")


def test_a_path_that_looks_like_a_host_stays_a_path():
    assert answer(target="//elsewhere.example/").location == "https://console.example:8000//elsewhere.example/"
