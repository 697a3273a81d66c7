"""Test that support finds a failed order, reads its journey, resubmits it and sees the outcome, by keyboard."""

from __future__ import annotations

import re

import pytest
import stomp
from playwright.sync_api import expect

from tests.browser.axe_violations import assert_accessible
from tests.browser.conftest import PASSWORD, picture
from tests.browser.keyboard import follow
from tests.waiting import wait_until

pytestmark = pytest.mark.browser

TOPIC = "VirtualTopic.Repair"
BILLING = f"Consumer.Billing.{TOPIC}"


class Billing(stomp.ConnectionListener):
    """A consumer that refuses what it gets until it is mended."""

    def __init__(self, connection: stomp.Connection12) -> None:
        self.connection, self.is_broken = connection, True

    def on_message(self, frame) -> None:
        settle = self.connection.nack if self.is_broken else self.connection.ack
        settle(frame.headers["ack"])


@pytest.fixture
def billing(site):
    """The business: orders go to a virtual topic, of which billing consumes a queue."""
    connection = stomp.Connection12([("127.0.0.1", site.stomp_port)])
    listener = Billing(connection)
    connection.set_listener("billing", listener)
    connection.connect("admin", PASSWORD, wait=True, headers={"client-id": "billing"})
    connection.subscribe(f"/queue/{BILLING}", id="1", ack="client-individual")
    for order in range(4710, 4714):
        body = f'{{"order": {order}, "customer": "C-{order % 7}"}}'
        connection.send(f"/topic/{TOPIC}", body, headers={"persistent": "true", "order": str(order)})
    yield listener
    connection.disconnect()


def test_support_finds_an_order_that_failed_and_sends_it_again(page_of, site, billing):
    page = page_of("support")
    page.keyboard.press("g")
    page.keyboard.press("d")
    page.wait_for_url(f"{site.url}/dead-letters/")
    rejected = page.get_by_role("link", name=re.compile("rejected by billing"))

    def are_listed() -> bool:
        page.reload()
        return rejected.is_visible()

    wait_until(are_listed, "the page lists what billing rejected meanwhile")
    picture(page, "dead-letters")

    page.locator("body").press("g")
    page.keyboard.press("o")
    page.wait_for_url(f"{site.url}/")
    page.keyboard.press("/")
    page.keyboard.type("order:4711")
    page.keyboard.press("Enter")
    hit = page.locator(".hit").first
    expect(hit).to_contain_text("Dead-lettered")
    expect(hit).to_contain_text(f"from /queue/{BILLING}")
    page.keyboard.press("j")
    expect(hit).to_be_focused()
    page.keyboard.press("Enter")

    expect(page.get_by_role("heading", name="Journey")).to_be_visible()
    expect(page.locator(".journey")).to_contain_text("Failed in")
    expect(page.locator(".similar")).to_contain_text("4 similar dead letters")
    expect(page.locator("#body-json")).to_contain_text("••••")  # support sees the form of a body, not its values
    picture(page, "journey")
    assert_accessible(page)

    page.keyboard.press("r")
    expect(page.locator(".impact")).to_contain_text("goes to exactly one queue")
    expect(page.get_by_label("Reason")).to_be_focused()
    page.evaluate("window.sluiceLive.cut()")  # the line is cut in the middle of it
    billing.is_broken = False
    page.keyboard.type("billing is mended")
    picture(page, "resubmit")
    page.keyboard.press("Enter")
    expect(page.locator(".job-result")).to_contain_text("Resubmitted")
    expect(page.locator(".journey-summary")).to_contain_text("Delivered and acknowledged")
    expect(page.locator("[data-pill]")).to_have_text("Live")
    picture(page, "resubmitted")
    assert_accessible(page)

    page.reload()
    journey = page.locator(".journey")
    expect(journey).to_contain_text("Resubmitted")
    expect(journey).to_contain_text("billing is mended")
    expect(journey).to_contain_text("Acknowledged in")
    follow(page, "View job")
    expect(page.locator("[data-cell=done]")).to_have_text("1")
