"""The form of the schedule of backups."""

from __future__ import annotations

from typing import Any

from django import forms

from brokerapp.errors import RequestRefused
from console.analyses.reports.forms import NEVER, TimingForm
from console.backups.records.models import BackupSchedule

#: Backups that may be kept at most: a year of daily ones.
MAX_KEPT = 400


class BackupScheduleForm(TimingForm):
    """Form of the schedule: when, how many are kept, and whether recorded traffic is included."""

    keep = forms.IntegerField(min_value=1, max_value=MAX_KEPT, initial=7)
    with_archive = forms.BooleanField(required=False)

    def __init__(self, data: Any = None, schedule: BackupSchedule | None = None) -> None:
        self.schedule = schedule or BackupSchedule.load()
        own = {"keep": self.schedule.keep, "with_archive": self.schedule.with_archive}
        times = self.said_by(self.schedule) if self.schedule.cron else {"rhythm": NEVER, "zone": self.schedule.zone}
        super().__init__(data, initial={"time": "02:00", **times, **own})

    def clean(self) -> dict[str, Any]:
        """Check the schedule, which spans several fields."""
        said: dict[str, Any] = super().clean() or {}
        try:
            said["timing"] = TimingForm(self.data).timing()
        except RequestRefused as error:
            self.add_error("rhythm", str(error))
        return said

    def apply(self) -> BackupSchedule:
        """Set the fields of the schedule, without saving it."""
        said, timing = self.cleaned_data, self.cleaned_data["timing"]
        self.schedule.cron, self.schedule.zone = (timing.cron, timing.zone) if timing else ("", said["zone"] or "UTC")
        self.schedule.keep, self.schedule.with_archive = said["keep"], said["with_archive"]
        return self.schedule
