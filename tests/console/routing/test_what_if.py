"""Test what-if analyses of drafts: start, result beside the draft, and permissions."""

import json

import pytest
from django.urls import reverse

from brokerapp.model.definitions import CompositeDestination, ForwardTarget, VirtualTopic
from brokerapp.model.destination import Destination
from console.access.roles import everything
from console.analyses import run_service
from console.analyses.models import AnalysisRun
from console.audit.models import AuditEntry
from console.routing.definitions.changes import DefinitionChange
from console.routing.drafts import draft_service
from console.routing.preview import what_if
from tests.console.conftest import waiting_tasks

Q = Destination.queue
CHANGE = DefinitionChange(
    None,
    CompositeDestination(Q("shop.in"), (ForwardTarget(Q("shop.eu"), "region = 'eu'"), ForwardTarget(Q("vault.all")))),
)


@pytest.fixture
def draft(console, db):
    return draft_service.create_draft("ann", "Split by region", [CHANGE], 0)


def table(name, columns, *rows):
    columns = [{"name": each, "label": each, "unit": ""} for each in columns.split()]
    return {
        "file": f"{name}.parquet", "title": name, "columns": columns,
        "rows": [list(row) for row in rows], "total_rows": len(rows),
    }  # fmt: skip


RESULT = {
    "sentence": "The draft would have changed what 3 targets of 3 get.",
    "notes": ["Some of the traffic was sampled."],
    "about": {}, "window": {"since_us": 0, "until_us": 60_000_000}, "rows_read": 30, "freshness_us": 60_000_000,
    "seconds": 1.5,
    "charts": [{"title": "Waiting", "figure": {"data": [
        {"name": each, "legendgroup": each, "x": [], "y": []} for each in ("queue://shop.eu", "queue://vault.all")
    ], "layout": {}}}],
    "tables": [
        table("totals", "what unit in_force draft difference", ("Copies stored", "messages", 10, 14, 4)),
        table(
            "targets",
            "target state in_force draft difference in_force_bytes draft_bytes served waiting_recorded waiting_draft",
            ("queue://shop.in", "lost", 10, 0, -10, 100, 0, 2.0, 0, 0),
            ("queue://shop.eu", "new", 0, 4, 4, 0, 2048, 0.0, 0, 4),
            ("queue://vault.all", "new", 0, 10, 10, 0, 100, 0.0, 0, 10),
        ),
        table(
            "legs", "leg definition at target selector in_force taken refused unknown",
            (1, "compositeQueue:shop.in", "queue://shop.in", "queue://shop.eu", "region = 'eu'", 0, 4, 5, 1),
            (2, "compositeQueue:shop.in", "queue://shop.in", "queue://vault.all", None, 0, 10, 0, 0),
        ),
        table(
            "samples", "what message time destination",
            ("leg 1", "ID:b-1:7", "2026-01-01T00:00:00Z", "queue://shop.in"),
            ("reaches nothing", "ID:b-1:8", "2026-01-01T00:00:00Z", "queue://shop.in"),
        ),
    ],
}  # fmt: skip


#: What columns were called in results that were made before they got the names that they have.
FORMER = {"in_force": "today", "in_force_bytes": "today_bytes", "waiting_recorded": "waiting_today"}


def finished(run, settings):
    """The run as a worker leaves it."""
    folder = settings.SLUICE.results / str(run.id)
    folder.mkdir(parents=True)
    (folder / "result.json").write_text(json.dumps(RESULT))
    run_service.on_state_changed(str(run.id), "done", {"sentence": RESULT["sentence"]})


def started(client, draft, **given):
    response = client.post(reverse("start-trial", args=[draft.pk]), {"window": "6h", **given})
    run = AnalysisRun.objects.get()
    assert response.url == reverse("draft-trial", args=[draft.pk, run.id])
    return run


def test_a_trial_takes_what_the_draft_says_and_what_is_in_force_along(draft, admin):
    waiting_tasks("spark")  # of other tests
    run = started(admin, draft)
    [(_task, [_run, request])] = waiting_tasks("spark")
    assert (request["kind"], request["window"], request["draft"]) == ("whatif", "6h", str(draft.pk))
    ids = [each["kind"] for each in request["trial"]["proposed"]["virtualDestinations"]]
    assert ids[-1] == "compositeQueue"
    assert "compositeQueue" not in [each["kind"] for each in request["trial"]["current"]["virtualDestinations"]]
    assert set(request["trial"]["circumstances"]) == {"queues", "bindings", "kept", "wanted", "listened"}
    assert run.request["revision"] == str(draft.revision)
    assert AuditEntry.objects.filter(action="try draft", object="Split by region").exists()
    page = admin.get(reverse("draft-trials", args=[draft.pk])).content.decode()
    assert f'data-topic="run:{run.id}"' in page
    admin.post(reverse("cancel-trial", args=[draft.pk, run.id]))
    run.refresh_from_db()
    assert run.state == "cancelled"


def test_a_draft_that_cannot_work_is_not_tried(draft, admin):
    draft_service.replace_changes(
        draft, "ann", [DefinitionChange(None, CompositeDestination(Q("a"), (ForwardTarget(Q("a")),)))], "changed"
    )
    page = admin.post(reverse("start-trial", args=[draft.pk]), {"window": "6h"}, follow=True).content.decode()
    assert "The draft cannot be analyzed" in page
    page = admin.post(reverse("start-trial", args=[draft.pk]), {"window": "soon"}, follow=True).content.decode()
    assert not AnalysisRun.objects.exists()


def test_a_draft_is_tried_on_an_explicit_time_range_by_form_and_api(draft, admin):
    given = {"window": "custom", "from": "2026-07-01T10:00", "to": "2026-07-01T11:00", "zone": "Europe/Berlin"}
    run = started(admin, draft, **given)
    ends = {"since_us": 1_782_892_800_000_000, "until_us": 1_782_896_400_000_000}
    assert {name: run.request.get(name) for name in ("window", *ends)} == {"window": None, **ends}
    admin.post(reverse("cancel-trial", args=[draft.pk, run.id]))
    page = admin.get(reverse("draft-trials", args=[draft.pk])).content.decode()
    assert 'name="from" step="1" value="2026-07-01T08:00:00"' in page, "the same range, in the reader's zone"
    url = f"/api/v1/routing/drafts/{draft.pk}/trials"
    body = {"since": "2026-07-01T08:00", "until": "2026-07-01T09:00Z"}
    made = admin.post(url, body, content_type="application/json")
    assert {name: made.json()["request"][name] for name in ends} == ends
    assert AuditEntry.objects.filter(action="try draft").first().after["until_us"] == ends["until_us"]
    refused = started_refused(admin, draft, **{**given, "to": "2026-07-01T09:00"})
    assert "The time range must start before it ends" in refused


def started_refused(client, draft, **given) -> str:
    """The page after a request that was refused."""
    return client.post(reverse("start-trial", args=[draft.pk]), given, follow=True).content.decode()


def test_the_comparison_shows_targets_legs_samples_and_what_is_doubtful(draft, admin, settings):
    run = started(admin, draft)
    finished(run, settings)
    page = admin.get(reverse("draft-trial", args=[draft.pk, run.id])).content.decode()
    for expected in (
        RESULT["sentence"], "Some of the traffic was sampled.", 'badge-accent">new<', 'badge-look">lost<', "+2.0 KiB",
        "region = &#x27;eu&#x27;", f'{reverse("find")}?q=ID%3Ab-1%3A7', "Unrouted messages",
        reverse("queue", args=["shop.eu"]), "Copies stored",
        f'data-analyse="{reverse("draft-trials", args=[draft.pk])}"',
    ):  # fmt: skip
        assert expected in page, expected
    assert "The draft has changed since this run" not in page
    draft_service.replace_changes(draft, "ann", [CHANGE], "changed")
    assert (
        "The draft has changed since this run" in admin.get(reverse("draft-trials", args=[draft.pk])).content.decode()
    )
    assert reverse("draft-trial", args=[draft.pk, run.id]) in admin.get(reverse("run", args=[run.id])).content.decode()


def test_a_comparison_that_was_made_before_its_columns_were_renamed_says_the_same():
    former = {
        **RESULT,
        "tables": [
            {**each, "columns": [{"name": FORMER.get(column["name"], column["name"])} for column in each["columns"]]}
            for each in RESULT["tables"]
        ],
    }
    assert former != RESULT
    assert what_if.visible_result(former, everything) == what_if.visible_result(RESULT, everything)


def test_definitions_that_act_at_one_destination_are_told_apart_by_their_names():
    topic = "topic://VirtualTopic.shop"
    rows = [(1, "compositeTopic:VirtualTopic.shop", topic, topic), (2, VirtualTopic("VirtualTopic.>").id, topic, topic)]
    columns = "leg definition at target selector in_force taken refused unknown"
    tables = [each for each in RESULT["tables"] if each["title"] != "legs"]
    legs = table("legs", columns, *((*row, None, 0, 1, 0, 0) for row in rows))
    shown = what_if.visible_result({**RESULT, "tables": [*tables, legs]}, everything).forward_targets
    assert len({each["local_result"] for each in shown}) == 1
    assert [each["definition_name"] for each in shown] == [
        "Composite topic VirtualTopic.shop",
        "Virtual topic VirtualTopic.>",
    ]
    scoped = what_if.visible_result({**RESULT, "tables": [*tables, legs]}, lambda each: str(each) == topic)
    assert [each["definition_name"] for each in scoped.forward_targets] == [
        "Composite topic VirtualTopic.shop",
        "Virtual topic",
    ]


def test_who_sees_some_destinations_is_told_of_those_alone(draft, admin, browser_of, settings):
    elsewhere = browser_of("viewer", "queue://shop.>", name="before")  # its one change names what they do not see
    assert elsewhere.get(reverse("draft-trials", args=[draft.pk])).status_code == 404
    draft_service.add_change(
        draft, "ann", DefinitionChange(None, CompositeDestination(Q("shop.too"), (ForwardTarget(Q("shop.eu")),)))
    )
    run = started(admin, draft)
    finished(run, settings)
    page = browser_of("viewer", "queue://shop.>").get(reverse("draft-trials", args=[draft.pk])).content.decode()
    assert "shop.eu" in page
    assert "1 target hidden (no permission)" in page
    for hidden in ("vault", RESULT["sentence"], "Copies stored"):
        assert hidden not in page
    elsewhere = browser_of("viewer", "queue://office.>", name="else")
    assert elsewhere.get(reverse("draft-trials", args=[draft.pk])).status_code == 404
