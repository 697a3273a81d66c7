"""Test the time zones of pages: UTC, or the reader's own."""

from datetime import UTC, datetime, timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from brokerapp.errors import RequestRefused
from console.audit.models import AuditEntry
from console.ui.formatting import number_format, time_format
from console.ui.preferences import timezones

MOMENT = datetime(2026, 7, 1, 22, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "zone", "read"),
    [
        ("2026-07-01T22:30", "", "2026-07-01T22:30:00+00:00"),
        ("2026-07-02T04:00", "Asia/Kolkata", "2026-07-02T04:00:00+05:30"),
        ("2026-07-01T22:30Z", "Asia/Kolkata", "2026-07-01T22:30:00+00:00"),
        ("2026-07-01T22:30", "Atlantis/Capital", None),
        ("soon", "", None),
    ],
)
def test_a_moment_is_read_by_the_clock_of_its_zone_unless_it_says_otherwise(text, zone, read):
    assert timezones.parse_moment(text, zone) == (read and datetime.fromisoformat(read))


def test_a_form_shows_a_moment_by_the_clock_of_its_reader():
    with timezone.override("Asia/Kolkata"):
        assert timezones.display_moment("2026-07-01T22:30") == "2026-07-02T04:00"
        assert timezones.display_moment("soon") == "soon"
        assert number_format.format_iso_time("2026-07-01T22:30:00+00:00") == "2 Jul 2026, 04:00:00"


def test_a_moment_is_written_in_one_form_and_a_period_says_its_day_once():
    later = MOMENT + timedelta(hours=1)
    assert time_format.format_time(MOMENT, "UTC") == "1 Jul 2026, 22:30 UTC"
    assert time_format.format_time(None) == ""
    assert time_format.format_period(MOMENT, later, "UTC") == "1 Jul 2026, 22:30 to 23:30 UTC"
    assert time_format.format_period(MOMENT, later, "Europe/Berlin") == "2 Jul 2026, 00:30 to 01:30 CEST"
    with timezone.override("America/New_York"):
        assert time_format.format_exact_time(MOMENT) == "1 Jul 2026, 18:30:00 EDT"
        assert (
            time_format.format_period(MOMENT, later + timedelta(days=1))
            == "1 Jul 2026, 18:30 EDT to 2 Jul 2026, 19:30 EDT"
        )


@pytest.mark.parametrize("name", ["", "Atlantis/Capital", "../etc/passwd", "Europe"])
def test_what_is_no_zone_is_refused(name):
    with pytest.raises(RequestRefused, match="Unknown time zone"):
        timezones.get_zone(name)


def test_a_user_reads_times_by_the_clock_they_chose_and_programs_in_utc(console_without_store, browser_of):
    admin = browser_of("admin")
    entry = AuditEntry.objects.create(who="ada", action="purge", object="queue://q", outcome="done")
    AuditEntry.objects.filter(pk=entry.pk).update(time=MOMENT)
    audit = reverse("audit")
    assert "22:30:00 UTC" in admin.get(audit).content.decode()
    answer = admin.post(reverse("zone"), {"zone": "Asia/Kolkata", "back": audit}, follow=True)
    page = answer.content.decode()
    assert 'data-zone="Asia/Kolkata"' in page
    assert "04:00:00 IST" in page
    url = f"{audit}?since=2026-07-02T03:59&until=2026-07-02T04:01&zone=Asia/Kolkata"
    assert "queue://q" in admin.get(url).content.decode()
    assert "queue://q" not in admin.get(url.replace("&zone=Asia/Kolkata", "")).content.decode()
    [told] = admin.get("/api/v1/audit?action=purge").json()["items"]
    assert told["time"].startswith("2026-07-01T22:30")
    assert admin.post(reverse("zone"), {"zone": "Atlantis/Capital"}).status_code == 409
