"""The form of a report: what it asks, when, in words before a crontab line, and who gets it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from django import forms
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.utils import timezone

from analytics.requests.catalogue import ANALYSES, SQL, AnalysisDefinition
from analytics.requests.parameters import WINDOW, Parameter
from brokerapp.errors import RequestRefused
from console.access.permissions import AnyUser, has_permission
from console.access.roles import Permission, Role
from console.analyses.exports.formats import FORMATS
from console.analyses.questions import request_for
from console.analyses.reports.models import Report
from console.analyses.reports.schedule import (
    DAILY,
    DAYS,
    HOURLY,
    LAST_DAY,
    MONTHLY,
    WEEKDAYS,
    WEEKLY,
    MissedRunPolicy,
    ReportFrequency,
    ReportSchedule,
    zones,
)
from console.analyses.sql import report_queries, sql_service
from console.analyses.sql.models import SavedQuery

#: Addresses a report may name, analyses it may ask, days an edition may be kept.
MOST_ADDRESSES, MOST_QUESTIONS, LONGEST_KEPT = 30, 12, 3650
NEVER, BY_CRON = "never", "cron"
#: Moments that the form shows before a schedule is saved.
SHOWN = 3
#: Days of the week with their numbers, Monday first.
WEEK = [*list(enumerate(DAYS))[1:], (0, DAYS[0])]
#: What a question is asked about unless somebody chooses: reports are daily, as a rule.
USUAL_WINDOW = "24h"
FREQUENCIES = (
    (HOURLY, "every hour"),
    (DAILY, "every day"),
    (WEEKDAYS, "Monday to Friday"),
    (WEEKLY, "every week"),
    (MONTHLY, "every month"),
    (BY_CRON, "crontab expression"),
    (NEVER, "on demand"),
)
#: What comes with the mail besides the tables: the edition as a file.
DOCUMENTS = (("", "no file"), *((each.name, each.label) for each in FORMATS.values()))
#: Roles of people: the others are programs.
READERS = (Role.VIEWER, Role.SUPPORT, Role.ANALYST, Role.OPERATOR, Role.ADMIN)
MISSED_RUN_POLICIES = (
    (MissedRunPolicy.ONCE, "run the latest"),
    (MissedRunPolicy.ALL, "run each"),
    (MissedRunPolicy.SKIP, "skip"),
)


class Scheduled(Protocol):
    """What has a schedule."""

    cron: str
    zone: str


class TimingForm(forms.Form):
    """Form of a schedule."""

    rhythm = forms.ChoiceField(choices=FREQUENCIES, initial=DAILY)
    time = forms.CharField(required=False, initial="07:00", max_length=5)
    days = forms.TypedMultipleChoiceField(choices=list(enumerate(DAYS)), coerce=int, required=False, initial=[1])
    day = forms.CharField(required=False, initial="1", max_length=2)
    cron = forms.CharField(required=False, max_length=100)
    zone = forms.CharField(required=False, initial="UTC", max_length=64)

    def timing(self) -> ReportSchedule | None:
        """Build the schedule; None for a report without one. Raises RequestRefused."""
        self.is_valid()
        said = {name: self.cleaned_data.get(name) for name in TimingForm.base_fields}
        zone = said["zone"] or "UTC"
        if said["rhythm"] == NEVER:
            ReportSchedule.parse("0 0 * * *", zone)
            return None
        if said["rhythm"] == BY_CRON:
            return ReportSchedule.parse(said["cron"] or "", zone)
        rhythm = ReportFrequency(
            said["rhythm"] or DAILY, said["time"] or "", tuple(said["days"] or ()), said["day"] or ""
        )
        return ReportSchedule.parse(rhythm.cron, zone)

    @staticmethod
    def said_by(scheduled: Scheduled) -> dict[str, Any]:
        """Return the fields of the schedule of a report, or of something else that has one."""
        rhythm = ReportFrequency.of(scheduled.cron) if scheduled.cron else None
        fields: dict[str, Any] = {"cron": scheduled.cron, "zone": scheduled.zone}
        if rhythm is None:
            return fields | {"rhythm": BY_CRON if scheduled.cron else NEVER}
        return fields | {"rhythm": rhythm.kind, "time": rhythm.time, "days": list(rhythm.days), "day": rhythm.day}


    def preview(self) -> dict[str, Any]:
        """Return the next runs of the schedule, or its error, for the page."""
        try:
            timing = self.timing()
        except RequestRefused as error:
            return {"wrong": str(error)}
        return {"timing": timing, "moments": timing.next(timezone.now(), SHOWN) if timing else []}

    @staticmethod
    def page_context(form: forms.Form) -> dict[str, Any]:
        """Return what the fields of the schedule in a form need, which may have others, too."""
        initial = {name: form.get_initial_for_field(field, name) for name, field in TimingForm.base_fields.items()}
        return {
            "form": form, "rhythms": FREQUENCIES, "weekdays": WEEK, "zones": sorted(zones()), "last_day": LAST_DAY,
            "days": range(1, 32), **TimingForm(form.data or initial).preview(),
        }  # fmt: skip


class ReportForm(TimingForm):
    """Form of a report: schedule, analyses, recipients and retention."""

    name = forms.CharField(max_length=80)
    missed = forms.ChoiceField(choices=MISSED_RUN_POLICIES, initial=MissedRunPolicy.ONCE)
    roles = forms.MultipleChoiceField(choices=[(role, role) for role in READERS], required=False)
    addresses = forms.CharField(required=False, max_length=1000)
    attach = forms.BooleanField(required=False, initial=True)
    document = forms.ChoiceField(choices=DOCUMENTS, required=False)
    keep_days = forms.IntegerField(min_value=0, max_value=LONGEST_KEPT, initial=90)

    def __init__(self, data: Any = None, report: Report | None = None, initial: dict[str, Any] | None = None,
                 user: AnyUser | None = None) -> None:  # fmt: skip
        self.report, self.user = report or Report(), user
        if report is not None:
            own = {
                name: getattr(report, name)
                for name in ("name", "missed", "roles", "addresses", "attach", "document", "keep_days")
            }
            initial = own | self.said_by(report)
        super().__init__(data, initial=initial)

    def clean_name(self) -> str:
        """No two reports are called the same."""
        name = " ".join(self.cleaned_data["name"].split())
        if Report.objects.filter(name__iexact=name).exclude(pk=self.report.pk).exists():
            raise ValidationError(f"A report named “{name}” already exists.")
        return name

    def clean_addresses(self) -> str:
        """Mail addresses, comma separated."""
        addresses = [
            each.strip() for each in self.cleaned_data["addresses"].replace("\n", ",").split(",") if each.strip()
        ]
        if len(addresses) > MOST_ADDRESSES:
            raise ValidationError(f"Enter at most {MOST_ADDRESSES} addresses.")
        for each in addresses:
            try:
                validate_email(each)
            except ValidationError:
                raise ValidationError(f"{each[:80]!r} is not an email address.") from None
        return ", ".join(addresses)

    def clean(self) -> dict[str, Any]:
        """Check the schedule, the analyses and the recipients, each of which spans several fields."""
        said = super().clean()
        try:
            said["timing"] = TimingForm(self.data).timing()
        except RequestRefused as error:
            self.add_error("rhythm", str(error))
        try:
            said["questions"] = list(self._asked())
        except RequestRefused as error:
            self.add_error(None, str(error))
        else:
            if not 1 <= len(said["questions"]) <= MOST_QUESTIONS:
                self.add_error(None, f"Choose between 1 and {MOST_QUESTIONS} analyses.")
        return said

    def _asked(self) -> Iterable[dict[str, Any]]:
        for kind in self.data.getlist("kind"):
            if kind == SQL:
                raise RequestRefused("Choose saved queries by their name.")
            known = ANALYSES[kind].parameters if kind in ANALYSES else ()
            given = {each.name: self.data.get(f"{kind}.{each.name}", "") for each in known}
            _, parameters = request_for(kind, given)
            yield {"kind": kind, **parameters}
        for query in self.data.getlist("query"):
            if self.user is None:
                raise RequestRefused("Saved queries belong to users.")
            yield report_queries.question_for(query, self.data.get(f"query.{query}.window", ""), self.user)

    def queries(self) -> list[tuple[SavedQuery, bool, str]]:
        """Return the saved queries that can be scheduled: whether each is chosen, and its time range."""
        if self.user is None or not has_permission(self.user, Permission.SQL):
            return []
        return [(each, *self._chosen_query(each)) for each in sql_service.visible_queries(self.user)]

    def _chosen_query(self, query: SavedQuery) -> tuple[bool, str]:
        id = str(query.pk)
        if self.is_bound:
            return id in self.data.getlist("query"), self.data.get(f"query.{id}.window", query.window)
        own = next((each for each in self.report.questions if str(each.get("query")) == id), None)
        if own is not None:
            return True, own["window"]
        return self.initial.get("query") == id, query.window

    def choices(self) -> list[tuple[AnalysisDefinition, bool, list[tuple[Parameter, str]]]]:
        """Every analysis that can be scheduled: whether it is chosen, and its parameters with their values."""
        own = {question["kind"]: question for question in self.report.questions}
        return [(each, *self._chosen(each, own.get(each.kind))) for each in ANALYSES.values() if each.group]

    def _chosen(
        self, analysis: AnalysisDefinition, own: dict[str, Any] | None
    ) -> tuple[bool, list[tuple[Parameter, str]]]:
        kind, usual = analysis.kind, {WINDOW.name: USUAL_WINDOW} if WINDOW in analysis.parameters else {}
        if self.is_bound:
            said = {each.name: self.data.get(f"{kind}.{each.name}", "") for each in analysis.parameters}
            return kind in self.data.getlist("kind"), [(each, said[each.name]) for each in analysis.parameters]
        link = self.initial.get("question") or {}
        asked = own or (link if link.get("kind") == kind else {})
        values = {each.name: each.default for each in analysis.parameters} | usual | asked
        return bool(asked), [(each, values[each.name]) for each in analysis.parameters]

    def save(self, owner: str) -> Report:
        """Save the report with its owner, who gets mails about failures: the user who changed it last."""
        said, report = self.cleaned_data, self.report
        for name in ("name", "missed", "roles", "addresses", "attach", "document", "keep_days", "questions"):
            setattr(report, name, said[name])
        timing = said["timing"]
        report.cron, report.zone = (timing.cron, timing.zone) if timing else ("", said["zone"] or "UTC")
        report.owner = owner
        return report
