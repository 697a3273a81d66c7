"""Test the page of the API reference: Swagger's viewer in the console's colours, checked by axe."""

import pytest
from django.urls import reverse
from playwright.sync_api import expect

from tests.browser.axe_violations import COLOURS, RULES, axe_violations
from tests.browser.conftest import picture


@pytest.mark.long
@pytest.mark.browser
def test_axe_finds_nothing_on_the_page_of_the_api(page_of, site):
    page, said = page_of("admin", color_scheme="light"), []
    page.goto(site.url + reverse("api:openapi-view"))
    operation = page.locator("#operations-destinations-create_destination")
    expect(operation).to_be_visible()
    operation.locator("button").first.click()
    expect(operation.get_by_text("Responses", exact=True).first).to_be_visible()
    operation.scroll_into_view_if_needed()
    for scheme, rules in (("light", RULES), ("dark", COLOURS)):
        page.emulate_media(color_scheme=scheme)
        expect(page.locator("html")).to_have_class("dark-mode" if scheme == "dark" else "")
        said.append((scheme, axe_violations(page, rules)))
        picture(page, f"api-{scheme}")
    assert "\n".join(f"{where}: {barrier}" for where, barrier in said if barrier) == ""
