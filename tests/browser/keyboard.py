"""Operate pages with the keyboard only."""

from __future__ import annotations

from playwright.sync_api import Page

#: Presses of Tab after which a test gives up looking for what it wants to reach.
MAX_TABS = 80
#: Whether what has the focus is called so, or begins so.
IS_FOCUSED = """(wanted) => {
    const e = document.activeElement;
    const names = [e.getAttribute("aria-label"), e.labels?.[0]?.innerText, e.innerText];
    return names.some((name) => name && name.trim().startsWith(wanted));
}"""


def tab_to(page: Page, what: str) -> None:
    """Press Tab until the focus is on what is called so."""
    for _ in range(MAX_TABS):
        if page.evaluate(IS_FOCUSED, what):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"{what} cannot be reached with Tab")


def follow(page: Page, what: str) -> None:
    """Open what is called so."""
    tab_to(page, what)
    page.keyboard.press("Enter")
