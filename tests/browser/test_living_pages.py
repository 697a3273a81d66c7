"""Test live pages: stable rows, sorting again, live view, and time ranges."""

from __future__ import annotations

import os
import re
import signal

import pytest
from playwright.sync_api import Page, expect

from tests.ports import free_port
from tests.served import serving
from tests.waiting import wait_until

pytestmark = pytest.mark.browser

#: Milliseconds after which nobody seems to be there; see list.js.
IDLE = 11_000


def send(client, queue: str, *bodies: str) -> None:
    for body in bodies:
        client.send(f"/queue/{queue}", body, headers={"persistent": "true"})


def depth(page: Page, queue: str):
    return page.locator(f'[data-row="{queue}"] [data-cell=QueueSize]')


def test_a_row_holds_still_while_somebody_points_at_it_or_selected_it(page_of, site, client):
    send(client, "held.one", *"abc")
    page = page_of("admin")
    row = page.locator('[data-row="held.one"]')
    wait_until(lambda: page.goto(f"{site.url}/queues/?q=held.") and row.count(), "the node reports the queue")
    expect(depth(page, "held.one")).to_have_text("3")
    row.hover()
    send(client, "held.one", *"de")
    expect(row).to_have_class(re.compile("values-paused"))
    expect(depth(page, "held.one")).to_have_text("3")
    page.mouse.move(2, 2)
    expect(depth(page, "held.one")).to_have_text("5")
    expect(page.locator("[data-summary]")).to_have_text("1 queue changed.")

    page.get_by_role("checkbox", name=re.compile("held.one")).check()
    page.mouse.move(2, 2)
    page.evaluate("document.activeElement.blur()")
    send(client, "held.one", "f")
    expect(row).to_have_class(re.compile("values-paused"))
    expect(depth(page, "held.one")).to_have_text("5")
    page.locator("[data-select-none]").click()
    expect(depth(page, "held.one")).to_have_text("6")


def test_what_needs_attention_holds_still_while_somebody_is_at_it(page_of, site, client):
    send(client, "minded.one", *["x"] * 500)  # the overview shows the queues with the most messages
    page = page_of("admin")
    minded = page.locator('[data-cell-html="attention_html"], .finding').filter(has_text="minded.one").last
    expect(minded).to_contain_text("500 messages")
    minded.focus()
    send(client, "minded.one", *"de")
    expect(page.locator('[data-cell-html="attention_html"]')).to_have_class("values-paused")
    expect(minded).to_be_focused()
    expect(minded).to_contain_text("500 messages")
    page.evaluate("document.activeElement.blur()")
    expect(minded).to_contain_text("502 messages")


def test_a_list_sorts_again_when_asked_to_and_when_nobody_touches_it(page_of, site, client):
    send(client, "sorted.one", "a")
    send(client, "sorted.two", *"ab")
    page = page_of("viewer")
    page.clock.install()
    page.goto(f"{site.url}/queues/?q=sorted.&sort=-QueueSize")
    rows = page.locator("tbody [data-row]")
    expect(rows.first).to_have_attribute("data-row", "sorted.two")
    send(client, "sorted.one", *"bcd")
    expect(depth(page, "sorted.one")).to_have_text("4")
    expect(rows.first).to_have_attribute("data-row", "sorted.two")
    page.locator("[data-resort]").click()
    expect(rows.first).to_have_attribute("data-row", "sorted.one")

    page.mouse.move(2, 2)
    page.evaluate("document.activeElement.blur()")
    send(client, "sorted.two", *"cdefg")
    expect(depth(page, "sorted.two")).to_have_text("7")
    expect(rows.first).to_have_attribute("data-row", "sorted.one")
    page.clock.fast_forward(IDLE)
    expect(rows.first).to_have_attribute("data-row", "sorted.two")


def test_a_queue_is_followed_also_when_the_line_was_cut(page_of, site, client):
    send(client, "followed.one", "a")
    page = page_of("admin")
    page.goto(f"{site.url}/queues/followed.one/messages/")
    page.get_by_role("link", name="Live view", exact=True).click()
    rows = page.locator("#rows tr")
    expect(rows).to_have_count(1)
    page.evaluate("window.unreloaded = true")
    send(client, "followed.one", *"bc")
    expect(rows).to_have_count(3)
    page.evaluate("window.sluiceLive.cut()")
    send(client, "followed.one", "d")
    expect(rows).to_have_count(4)
    expect(page.locator("[data-pill]")).to_have_text("Live")
    numbers = [int(each) for each in page.locator("#rows [data-label=Number]").all_inner_texts()]
    assert numbers == sorted(numbers, reverse=True), "the newest stand on top"
    expect(page.locator("#follow")).to_contain_text(f"Live: up to date, last message number {numbers[0]}.")
    assert page.evaluate("window.unreloaded")


def test_rows_of_a_queue_that_is_followed_do_not_move_under_the_pointer(page_of, site, client):
    send(client, "followed.still", *"ab")
    page = page_of("admin")
    page.goto(f"{site.url}/queues/followed.still/messages/?end=1&follow=1")
    rows, state = page.locator("#rows tr"), page.locator("[data-follow-state]")
    rows.nth(1).hover()
    send(client, "followed.still", *"cde")
    expect(state).to_contain_text("3 new")
    expect(rows).to_have_count(2)
    rows.nth(1).locator(".tick input").check()
    page.mouse.move(2, 2)
    page.evaluate("document.activeElement.blur()")
    send(client, "followed.still", "f")
    expect(state).to_contain_text("4 new")
    expect(rows).to_have_count(2)
    rows.nth(1).locator(".tick input").uncheck()
    page.mouse.move(2, 2)
    page.evaluate("document.activeElement.blur()")
    expect(rows).to_have_count(6)
    expect(state).to_contain_text("last message number")
    shown = rows.locator("td.muted").all_inner_texts()
    assert shown == sorted(shown, key=int, reverse=True)


@pytest.mark.long
def test_a_tab_of_another_web_process_lives_through_its_sleep_and_its_restart(page_of, site, client, tmp_path):
    send(client, "restarted.one", "a")
    variables = {**site.variables, "SLUICE_HOST_NODE": ""}  # the node is in the other process
    port = free_port()
    page = page_of("viewer", forgiven="WebSocket connection")
    pill, shown = page.locator("[data-pill]"), depth(page, "restarted.one")
    with serving(variables, tmp_path / "web.log", port) as web:
        page.goto(f"{web.url}/queues/?q=restarted.")
        expect(shown).to_have_text("1")
        page.evaluate("window.unreloaded = true")
        send(client, "restarted.one", "b")
        expect(shown).to_have_text("2")
        expect(pill).to_have_text("Live")
        os.kill(web.pid, signal.SIGSTOP)  # as when a machine sleeps: the line is open, and nothing comes
        send(client, "restarted.one", "c")
        expect(pill).to_have_text(re.compile("Stale"))
        expect(shown).to_have_text("2")
        os.kill(web.pid, signal.SIGCONT)
        expect(shown).to_have_text("3")
        expect(pill).to_have_text("Live")
    expect(pill).to_have_text("Offline")
    send(client, "restarted.one", "d")
    with serving(variables, tmp_path / "web.log", port):
        expect(shown).to_have_text("4")
        expect(pill).to_have_text("Live")
    assert page.evaluate("window.unreloaded")


def test_a_window_chosen_on_the_chart_is_in_the_address_and_goes_along(page_of, site, client):
    send(client, "windowed.one", "a")
    page = page_of("admin")
    page.goto(f"{site.url}/queues/windowed.one/")
    box = page.locator(".live-chart").bounding_box()
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] * 0.5, middle)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.8, middle, steps=4)
    page.mouse.up()
    page.wait_for_url(re.compile(r"from=\d+&to=\d+"))
    chosen = re.search(r"from=\d+&to=\d+", page.url)[0]
    expect(page.get_by_role("link", name="Custom")).to_be_visible()
    page.get_by_role("navigation", name="windowed.one").get_by_role("link", name="History").click()
    page.wait_for_url(re.compile(f"tab=history&{chosen}"))
    page.goto(f"{site.url}/?{chosen}")
    page.locator('a.finding[href^="/queues/"]').first.click()
    page.wait_for_url(re.compile(f"/queues/.+[?]{chosen}"))
    page.get_by_role("link", name="Messages", exact=True).first.click()
    page.wait_for_url(re.compile(r"/messages/\?(after=\d+&)?from=20"))  # without a number: all came later
