"""Test large messages, and those that are too large for a page or the API."""

from __future__ import annotations

import json
import uuid

import pytest
from django.urls import reverse

from brokerapp.engine.editing.operator_message import MAX_BODY
from brokerapp.model.destination import Destination
from console.broker.gateway import gateway
from tests.console.accounts.test_api_tokens import caller, token_of

pytestmark = pytest.mark.django_db

LARGE = 3_000_000
#: No form and no document of a message that can be sent is so long.
BEYOND = "x" * (3 * MAX_BODY + 2_000_000)


@pytest.fixture
def name() -> str:
    """A queue that no other test knows."""
    return f"large-{uuid.uuid4().hex[:8]}"


def sizes(name: str) -> list[int]:
    """The bytes of the bodies in a queue."""
    return [each.size for each in gateway().browse(Destination.queue(name), 0, 5, None).messages]


def test_a_page_sends_a_large_message(admin, console, name):
    page = admin.post(reverse("send"), {"destination": name, "body": "€" * (LARGE // 3)})
    assert page.status_code == 200
    assert sizes(name) == [LARGE]


def test_a_page_keeps_the_form_of_a_message_that_is_too_large(admin, console, name):
    body = "x" * (MAX_BODY + 1)
    page = admin.post(reverse("send"), {"destination": name, "body": body})
    assert page.status_code == 413
    assert page.context["form"].body == body
    assert page.context["error"] == "The body has 8,388,609 bytes. At most 8,388,608 bytes can be sent from here."


def test_a_form_beyond_all_bounds_gets_a_page_that_names_the_limit(admin, console, name):
    admin.handler.enforce_csrf_checks = True  # what checks the token reads the form first
    token = str(admin.get(reverse("send")).context["csrf_token"])
    page = admin.post(reverse("send"), {"csrfmiddlewaretoken": token, "destination": name, "body": BEYOND})
    assert page.status_code == 413
    said = page.content.decode()
    assert "Request too large" in said
    assert "at most 25.0 MiB" in said
    assert "Nothing was changed" in said


def test_a_template_of_a_large_body_is_refused(admin, console, name):
    form = {"destination": name, "body": "x" * LARGE, "do": "keep", "template-name": "large"}
    page = admin.post(reverse("send"), form)
    assert page.status_code == 413
    assert "At most 1,048,576 bytes can be saved in a template." in page.context["error"]


def post(body: str, name: str):
    """Have a program send this body."""
    wanted = {"destination": f"/queue/{name}", "body": body}
    return caller(token_of("admin", "send")).post("/api/v1/messages", wanted, content_type="application/json")


def test_the_api_sends_a_large_message(console, name):
    assert post("x" * LARGE, name).status_code == 201
    assert sizes(name) == [LARGE]


@pytest.mark.parametrize("body", ["x" * (MAX_BODY + 1), BEYOND], ids=["body", "document"])
def test_the_api_says_what_is_too_large(console, name, body):
    answer = post(body, name)
    assert answer.status_code == 413
    problem = json.loads(answer.content)
    assert problem["type"] == "urn:sluice:problem:too-large"
    assert "t most" in problem["detail"]


def test_a_page_of_large_messages_that_is_cut_by_time_says_so(admin, console, name, monkeypatch):
    monkeypatch.setattr("console.broker.gateway.LOOK", 0.0)
    gateway().send({"destination": name, "body": "x" * LARGE}, 8, "")
    page = admin.get(reverse("messages", kwargs={"name": name}))
    assert 0 < len(page.context["rows"]) < 8
    assert "reading stopped at the time limit" in page.content.decode()
