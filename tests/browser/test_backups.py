"""Test the page of backups in a browser: a backup that ends while it is shown, and the menu that shows its entry."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.migrated import run_script

pytestmark = pytest.mark.browser

_RUNS = "from console.backups.records.models import BackupRun; from django.utils.timezone import now\n"
_STARTED = f"{_RUNS}BackupRun.objects.create(step='Snapshot of the store', host='elsewhere', pid=1, heartbeat=now())"
_ENDED = f"{_RUNS}BackupRun.objects.filter(state='running').update(state='done', finished=now(), bytes=4096, step='')"


@pytest.mark.long
def test_a_backup_that_ends_is_told_and_can_be_followed_by_the_next_one(page_of, site):
    run_script(_STARTED, site.variables)
    page = page_of("admin")
    page.goto(f"{site.url}/backups/")
    entry = page.get_by_role("navigation", name="Main").get_by_role("link", name="Backups")
    expect(entry).to_be_in_viewport(ratio=1)
    assert page.evaluate("scrollY") == 0, "only the menu is scrolled"
    start = page.get_by_role("button", name="Back up now")
    expect(page.get_by_role("status").filter(has_text="Backup running. Snapshot of the store")).to_be_visible()
    expect(start).to_be_disabled()

    run_script(_ENDED, site.variables)
    expect(page.get_by_role("status").filter(has_text="Backup completed in")).to_be_visible()
    expect(page.get_by_text("Backup running")).to_have_count(0)
    start.click()
    page.get_by_label("Include recorded traffic").check()
    expect(page.get_by_role("button", name="Start backup")).to_be_visible()
