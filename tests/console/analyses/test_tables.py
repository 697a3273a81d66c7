"""The page, the API and brokerctl show the tables of recorded traffic, and have periods computed again."""

import json
import sqlite3
import time
from dataclasses import replace

import pyarrow as pa
import pytest
import redis
from django.core.management import call_command
from django.urls import reverse

from analytics.archive.broker_archive import ArchiveCommit, BrokerArchive
from analytics.archive.stream_ids import position_of
from analytics.tables.builder import TableBuilder
from analytics.tables.catalog import TableCatalog
from analytics.tables.current_hours import CurrentHours, write_current_hours
from analytics.tables.definitions import DAY_US, HOUR_US, TABLES
from analytics.tables.storage import FolderStorage
from brokerapp.model.message import Message
from brokerapp.store.client.keys import trace_key
from brokerapp.system.environment import Environment
from brokerapp.tracing.decoding import decode
from brokerapp.tracing.recorder import TraceRecorder
from console.analyses.tables import UPDATE_TASK, levels_of
from console.audit.models import AuditEntry
from console.ops.processes import process_specs
from tests.console.accounts.test_api_tokens import caller, token_of
from tests.console.api.test_api import call
from tests.console.conftest import waiting_tasks

HOUR = time.time_ns() // 1000 // HOUR_US * HOUR_US - 5 * HOUR_US


@pytest.fixture
def recorded(console, settings):
    """An archive with an hour of traffic, whose tables are computed."""
    broker = settings.SLUICE.broker_name
    archive, recorder = BrokerArchive(settings.SLUICE.archive, broker), TraceRecorder(broker)
    recorder.record_enqueue(HOUR, [Message("ID:1", b"message-id:ID\\c1\n", b"x", True, born_us=HOUR)], "queue://a")
    archive.append(decode(recorder.take_encoded()[0]), ArchiveCommit("1-0"))
    catalog = TableCatalog(FolderStorage(settings.SLUICE.tables), archive)
    nothing = {each.name: each.schema.empty_table() for each in TABLES.values()}
    TableBuilder(catalog, lambda *_: nothing).build(time.time_ns() // 1000)
    return catalog


def text(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M", time.gmtime(seconds))


def test_the_page_shows_what_is_computed_and_what_is_pending(recorded, admin, settings):
    shown = admin.get(reverse("tables")).content.decode()
    assert settings.SLUICE.broker_name in shown
    assert ">none</span>" in shown
    recorded.storage.delete(recorded.name(HOUR // DAY_US * DAY_US, "manifest.json"))
    assert "(1 event)" in admin.get(reverse("tables")).content.decode()


def test_a_period_is_rebuilt_on_request_and_recorded(recorded, admin):
    waiting_tasks("spark")
    begin = HOUR / 1e6
    period = {"window": "custom", "from": text(begin), "to": text(begin + 60), "zone": "UTC"}
    answer = admin.post(reverse("rebuild-tables"), period)
    assert answer.status_code == 302
    assert [each.start_us for each in recorded.pending(time.time_ns() // 1000)] == [HOUR]
    assert UPDATE_TASK in [name for name, _ in waiting_tasks("spark")]
    assert AuditEntry.objects.get(action="rebuild").detail == ""


@pytest.mark.parametrize(
    ("period", "expected"),
    [
        ({"window": "custom", "from": "yesterday", "to": "2026-01-01"}, "yesterday"),
        ({"window": "custom", "from": "2026-01-02", "to": "2026-01-01"}, "before"),
        ({"window": "9y"}, "&#x27;9y&#x27; is not a time range of the form"),
    ],
)
def test_an_invalid_period_is_refused_with_the_rule(recorded, admin, period, expected):
    answer = admin.post(reverse("rebuild-tables"), period)
    assert answer.status_code == 400
    assert expected.casefold() in answer.content.decode().casefold()


def test_the_last_day_is_rebuilt_on_request(recorded, admin):
    assert admin.post(reverse("rebuild-tables"), {"window": "24h"}).status_code == 302
    assert HOUR in [each.start_us for each in recorded.pending(time.time_ns() // 1000)]


def test_only_users_who_run_analyses_rebuild(recorded, browser_of):
    viewer = browser_of("viewer")
    assert "Rebuild a period" not in viewer.get(reverse("tables")).content.decode()
    assert viewer.post(reverse("rebuild-tables"), {}).status_code == 403


def test_the_api_has_the_state_and_rebuilds(recorded, settings, db):
    program = caller(token_of("admin", "see", "analyse"))
    found = call(program, "get", "/analyses/tables")
    assert [each["broker"] for each in found["brokers"]] == [settings.SLUICE.broker_name]
    assert found["brokers"][0]["events"] == 1
    assert (found["hourly_days"], found["daily_days"]) == (93, 1830)
    body = {"since": text(HOUR / 1e6) + "Z", "until": text(HOUR / 1e6 + 1800) + "Z"}
    assert call(program, "post", "/analyses/tables/rebuild", body) == {"hours": 1}
    call(program, "post", "/analyses/tables/rebuild", {**body, "until": body["since"]}, status=409)


def test_brokerctl_shows_the_state_and_marks_a_period(recorded, settings, monkeypatch, capsys):
    monkeypatch.setenv("SLUICE_DATA", str(settings.SLUICE.data))
    broker = settings.SLUICE
    options = ["--redis", broker.redis_url, "--name", broker.broker_name, "--json"]
    call_command("brokerctl", *options, "tables")
    assert json.loads(capsys.readouterr().out)["brokers"][0]["pending_hours"] == 0
    call_command("brokerctl", *options, "rebuild-tables", "--since", text(HOUR / 1e6))
    assert json.loads(capsys.readouterr().out)["hours"] == 1
    assert len(list(recorded.pending(time.time_ns() // 1000))) == 1


def test_beat_checks_every_ten_minutes_whether_tables_are_to_be_computed(migrated):
    task = "select every, period, queue from django_celery_beat_periodictask task"
    with sqlite3.connect(migrated) as database:  # as migrations leave it: tests with transactions empty that of others
        found = database.execute(
            f"{task} join django_celery_beat_intervalschedule schedule on schedule.id = task.interval_id "
            "where task = 'analytics.tasks.check_tables'"
        ).fetchall()
    assert found == [(10, "minutes", "default")]


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        (None, ""),
        ({"daily": 0, "hourly": 0, "raw_seconds": 3600}, "Events"),
        ({"daily": 29, "hourly": 1, "raw_seconds": 60}, "29 daily tables, 1 hourly table, events for the rest"),
        ({"daily": 0, "hourly": 48, "raw_seconds": 0}, "48 hourly tables"),
    ],
)
def test_a_result_says_what_it_was_read_from(levels, expected):
    assert levels_of({"levels": levels}) == expected


@pytest.mark.parametrize(("value", "is_on"), [(None, False), ("0", False), ("1", True)])
def test_current_hours_are_counted_by_a_process_of_its_own_where_it_is_switched_on(value, is_on, tmp_path):
    variables = {"SLUICE_DATA": str(tmp_path)} | ({"SLUICE_STREAM_TABLES": value} if value else {})
    names = [each.name for each in process_specs(Environment.read(variables))]
    assert ("tables" in names) is is_on


def test_the_page_the_api_and_brokerctl_show_how_far_current_hours_are_counted(
    recorded, admin, settings, monkeypatch, capsys, db
):
    assert "not counted before they are complete" in admin.get(reverse("tables")).content.decode()
    settings.SLUICE = replace(settings.SLUICE, streams_tables=True)
    assert "no events counted yet" in admin.get(reverse("tables")).content.decode()
    now_us, broker = time.time_ns() // 1000, settings.SLUICE
    rows = {each.name: each.schema.empty_table() for each in TABLES.values()}
    counts = {"messages": 5, "bytes": 1, "last": HOUR, "events": 5}
    row = {"slot": HOUR, "destination": "queue://a", "kind": "enqueue", **counts}
    rows["traffic"] = pa.Table.from_pylist([row]).cast(TABLES["traffic"].schema)
    with redis.Redis.from_url(broker.redis_url) as client:
        counted = client.xadd(trace_key(broker.broker_name), {"b": b"", "n": 0}).decode()
        write_current_hours(recorded, CurrentHours(position_of(counted), HOUR, "query", HOUR, now_us, rows=rows))
        shown = admin.get(reverse("tables")).content.decode()
        assert "up to date" in shown
        assert "5 events in 1 hour" in shown
        behind = f"{int(counted.partition('-')[0]) - 1}-0"
        write_current_hours(recorded, CurrentHours(position_of(behind), HOUR, "query", HOUR, now_us, rows=rows))
        time.sleep(0.2)
        assert " behind" in admin.get(reverse("tables")).content.decode()
    found = call(caller(token_of("admin", "see", "analyse")), "get", "/analyses/tables")["current"]
    assert (found["hours"], found["events"]) == (1, 5)
    assert 0.1 < found["behind_seconds"] < 60
    monkeypatch.setenv("SLUICE_DATA", str(broker.data))
    monkeypatch.setenv("SLUICE_STREAM_TABLES", "1")
    for options in (["--redis", broker.redis_url, "--name", broker.broker_name], []):  # given, or of the environment
        call_command("brokerctl", *options, "tables")
        assert "5 events in 1 hour" in capsys.readouterr().out
        monkeypatch.setenv("REDIS_URL", broker.redis_url)
        monkeypatch.setenv("SLUICE_BROKER", broker.broker_name)
