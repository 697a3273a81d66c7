"""Test forms in a real browser: messages follow the input, and no input is lost."""

from __future__ import annotations

import re

import pytest
from django.urls import reverse
from playwright.sync_api import expect

from brokerapp.engine.editing.operator_message import MAX_BODY
from tests.browser.conftest import picture
from tests.served import PASSWORD
from tests.waiting import wait_until

pytestmark = pytest.mark.browser

#: What the tab keeps of a form.
KEPT = "sessionStorage.getItem('sluice.form')"


def test_an_error_of_the_routing_editor_goes_when_the_form_is_mended(page_of, site):
    page = page_of("admin", forgiven="400")
    page.goto(site.url + reverse("new-definition", args=["compositeQueue"]))
    page.get_by_label("Name", exact=True).fill("mended.in")
    page.get_by_label("Target name").nth(0).fill("mended.out")
    page.get_by_label("Target selector").nth(0).fill("region = ")
    page.get_by_role("button", name="Save as draft").click()
    wrong = page.locator("form.editor > .stack :is(.error, .note-error), form.editor [aria-invalid]")
    expect(wrong.first).to_be_visible()
    page.get_by_label("Target selector").nth(0).fill("region = 'eu'")
    expect(page.locator("#check")).to_contain_text("Ready to save")
    expect(wrong).to_have_count(0)
    picture(page, "mended")


def test_an_unchanged_definition_is_not_said_to_be_saved(page_of, site):
    page = page_of("admin", forgiven="400")
    page.goto(f"{site.url}/routing/?view=table")
    page.locator("main tbody a[href*=virtualTopic]:has-text('Edit')").first.click()
    page.get_by_role("button", name="Save as draft").click()
    refusal = page.locator(".note-error")
    expect(refusal).to_contain_text("Not saved: No changes to save.")
    expect(page.locator("#check")).to_contain_text("No changes to save.")
    expect(page.locator("#check")).not_to_contain_text("Ready to save")
    page.get_by_label("Postfix").fill(".copy")
    expect(page.locator("#check")).to_contain_text("Ready to save")
    expect(refusal).to_have_count(0)


def expire(page) -> None:
    """End the session of the browser, as time does."""
    [name] = (each["name"] for each in page.context.cookies() if re.fullmatch(r"sluice_[0-9a-f]+", each["name"]))
    page.context.clear_cookies(name=name)


def sign_in(page, user: str) -> None:
    """Fill in the form to which an expired session leads."""
    page.wait_for_url("**/login/**")
    page.get_by_label("User name").fill(user)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()


def fill_message(page, site) -> None:
    """Write a message with three properties, and send it with a session that has expired."""
    page.goto(site.url + reverse("send"))
    page.get_by_label("Destination").fill("kept.orders")
    page.get_by_label("Body", exact=True).fill('{"order": 4711}')
    page.get_by_role("button", name="Add property", exact=True).click()
    for number in (1, 2, 3):
        page.get_by_label(f"Name of property {number}").fill(f"p{number}")
        page.get_by_label(f"Value of property {number}").fill(str(number))
    page.get_by_label("Persistent").uncheck()
    page.get_by_text("Schedule", exact=True).click()
    page.get_by_label("Delay").fill("60")
    page.get_by_label("Delay").fill("")
    page.get_by_text("Standard headers").click()
    page.get_by_label("correlation-id").fill("c-4711")
    expire(page)
    page.get_by_role("button", name="Send message", exact=True).click()


def test_a_form_that_was_sent_with_an_expired_session_is_filled_in_again_after_the_login(page_of, site):
    page = page_of("admin")
    fill_message(page, site)
    sign_in(page, "admin")
    expect(page.locator("main .note")).to_contain_text("The form was restored, nothing was submitted")
    expect(page.get_by_label("Destination")).to_have_value("kept.orders")
    expect(page.get_by_label("Body", exact=True)).to_have_value('{"order": 4711}')
    expect(page.get_by_label("Value of property 3")).to_have_value("3")
    expect(page.get_by_label("Persistent")).not_to_be_checked()
    expect(page.get_by_label("correlation-id")).to_have_value("c-4711")
    expect(page.get_by_label("correlation-id")).to_be_visible()
    expect(page.get_by_label("Delay")).to_be_hidden()
    picture(page, "restored")
    page.get_by_role("button", name="Send message", exact=True).click()
    expect(page.locator("#sent-title")).to_contain_text("1 message sent")
    page.goto(site.url + reverse("send"))
    expect(page.get_by_label("Destination")).to_have_value("")
    assert page.evaluate(KEPT) is None


def test_another_user_never_gets_the_form_of_an_expired_session(page_of, site):
    page = page_of("admin", forgiven="403")  # an analyst may not send
    fill_message(page, site)
    sign_in(page, "analyst")
    page.wait_for_url(f"{site.url}/**")
    expect(page.locator("body[data-user=analyst]")).to_be_visible()
    assert page.evaluate(KEPT) is None
    assert "4711" not in page.content()


def test_no_password_of_a_form_is_kept(page_of, site):
    page = page_of("viewer")
    page.goto(site.url + reverse("change-password"))
    for field in page.locator("main input[type=password]").all():
        field.fill("an entirely new secret")
    expire(page)
    page.locator("main form:has(input[type=password]) .button-main").click()
    page.wait_for_url("**/login/**")
    assert "secret" not in (page.evaluate(KEPT) or "")


def test_an_action_of_a_message_leads_back_to_its_form_after_the_login(page_of, site, client):
    client.send("/queue/kept.moved", "x", headers={"persistent": "true"})
    page = page_of("admin", forgiven="404")  # where the form is sent to is no page
    address = site.url + reverse("message-action", args=["kept.moved"], query={"action": "move"})
    move = page.get_by_role("button", name="Move 1 message")
    wait_until(lambda: page.goto(address) and move.count(), "the message is stored")
    page.get_by_label("Target", exact=True).fill("kept.target")
    page.get_by_label("Reason").fill("billing is back")
    expire(page)
    move.click()
    sign_in(page, "admin")
    expect(page.get_by_label("Reason")).to_have_value("billing is back")
    expect(page.get_by_label("Target", exact=True)).to_have_value("kept.target")


def test_what_is_typed_while_the_preview_of_a_move_loads_stays_in_the_form(page_of, site, client):
    client.send("/queue/kept.typed", "x", headers={"persistent": "true"})
    page = page_of("admin")
    reason, preview = page.get_by_label("Reason"), page.locator("#job-preview")
    address = site.url + reverse("message-action", args=["kept.typed"], query={"action": "move"})
    button = page.get_by_role("button", name="Move 1 message")
    wait_until(lambda: page.goto(address) and button.count(), "the message is stored")
    waiting = []
    page.route("**/messages/action?*", lambda route: waiting.append(route))
    page.get_by_label("Target").fill("kept.target")
    reason.fill("billing is back")
    wait_until(lambda: page.evaluate("1") and waiting, "the preview is asked for")
    waiting[0].continue_()
    expect(preview).to_contain_text("kept.target")
    expect(reason).to_have_value("billing is back")


def test_a_definition_that_is_checked_with_an_expired_session_is_not_lost(page_of, site):
    page = page_of("admin")
    page.goto(site.url + reverse("new-definition", args=["compositeQueue"]))
    page.get_by_label("Name", exact=True).fill("kept.in")
    expire(page)
    page.get_by_label("Target name").nth(0).fill("kept.out")
    sign_in(page, "admin")
    expect(page.get_by_label("Name", exact=True)).to_have_value("kept.in")
    expect(page.get_by_label("Target name").nth(0)).to_have_value("kept.out")


def test_a_map_message_is_written_with_the_keyboard(page_of, site):
    page = page_of("admin")
    page.goto(site.url + reverse("send"))
    page.get_by_label("Destination").fill("typed.map")
    page.get_by_role("radio", name="Text").first.focus()
    for _ in range(2):
        page.keyboard.press("ArrowRight")
    expect(page.get_by_role("radio", name="Map")).to_be_checked()
    expect(page.get_by_label("Body", exact=True)).to_be_hidden()
    for typed in ("Tab", "card", "Tab", "l", "Tab", "4711", "Tab", "Tab", "paid", "Tab", "b", "Tab", "true"):
        page.keyboard.press(typed) if typed == "Tab" else page.keyboard.type(typed)
    page.get_by_role("button", name="Add entry").click()
    expect(page.get_by_label("Name of entry 3")).to_be_focused()
    page.get_by_role("button", name="Remove entry 3").click()
    expect(page.get_by_label("Name of property 1")).to_have_value("")
    page.get_by_role("button", name="Send message", exact=True).click()
    expect(page.locator("#sent-title")).to_contain_text("1 message sent")
    rows = [
        [page.get_by_label(f"{part} of entry {number}").input_value() for part in ("Name", "Type", "Value")]
        for number in (1, 2)
    ]
    assert rows == [["card", "long", "4711"], ["paid", "boolean", "true"]]


def test_a_file_is_sent_as_bytes_and_one_that_is_too_large_is_named_before(page_of, site):
    page = page_of("admin")
    page.goto(site.url + reverse("send"))
    page.get_by_label("Destination").fill("typed.file")
    expect(page.get_by_text("Written as")).to_be_hidden()
    page.get_by_text("Bytes", exact=True).click()
    page.get_by_text("File", exact=True).click()
    file = page.get_by_label("File with the body")
    send = page.get_by_role("button", name="Send message", exact=True)
    file.set_input_files({"name": "b", "mimeType": "application/octet-stream", "buffer": bytes(MAX_BODY + 1)})
    send.click()
    assert "At most 8,388,608 bytes" in file.evaluate("field => field.validationMessage")
    file.set_input_files({"name": "b", "mimeType": "application/octet-stream", "buffer": b"\x00\xff"})
    send.click()
    expect(page.locator("#sent-title")).to_contain_text("1 message sent")
    expect(page.get_by_label("Body", exact=True)).to_have_value("AP8=")


def test_a_typed_password_is_shown_and_hidden_again_and_kept_nowhere(page_of, site):
    page = page_of("viewer")
    page.goto(site.url + reverse("change-password"))
    old = page.get_by_label("Old password")
    old.fill(PASSWORD)
    expect(old).to_have_attribute("type", "password")
    page.get_by_role("button", name="Show old password").click()
    expect(old).to_have_attribute("type", "text")
    expect(page.get_by_role("button", name="Hide old password")).to_be_visible()
    picture(page, "password-shown")
    page.get_by_label("New password", exact=True).fill("short")
    page.get_by_label("New password confirmation").fill("short")
    page.get_by_role("button", name="Change password").click()
    expect(page.locator(".error")).to_contain_text(["at least 12 characters"])
    picture(page, "password-refused")
    expect(page.get_by_role("button", name="Show old password")).to_be_visible()
    assert page.evaluate(KEPT) is None
