"""Test backups of the console: page, API, schedule, how many are kept, and what happens when one fails."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from django.core import mail
from django.core.management import CommandError, call_command
from django.db import IntegrityError, transaction
from django.urls import reverse
from django.utils import timezone

from brokerapp.backup.container import BackupReader, BackupWriter
from brokerapp.backup.data_folder import write_mark
from brokerapp.backup.manifest import BackupManifest
from brokerapp.errors import RequestRefused
from brokerapp.store.restored_mark import RestoredMark, RestoredRole
from brokerapp.system.checkout import command
from console.alerts import evaluation
from console.alerts.delivery import alert_delivery, retry_schedule
from console.alerts.delivery.models import AlertDelivery, AlertFiring, AlertRule
from console.audit.models import AuditEntry
from console.backups import backup_runs, command_line
from console.backups.records.models import BackupRun, BackupSchedule, data_folder_id
from console.broker import restored_copy
from console.broker.mirror import mirror
from console.ui.downloads import BLOCK_SIZE, FileDownload, in_blocks

State = BackupRun.State
PASSPHRASE = "correct horse battery"


@pytest.fixture
def folder(console, db, settings, tmp_path, monkeypatch):
    """Return the folder for backups of a console whose database is a file."""
    monkeypatch.delenv("SLUICE_BACKUP_PASSPHRASE_FILE", raising=False)
    monkeypatch.setenv("SLUICE_BACKUP_PASSPHRASE", PASSPHRASE)
    database = sqlite3.connect(tmp_path / "console.sqlite3")
    database.execute("CREATE TABLE one (answer)")
    database.execute("INSERT INTO one VALUES (42)")
    database.commit()
    database.close()
    (tmp_path / "secret-key").write_text("the key")
    settings.SLUICE = replace(
        settings.SLUICE,
        database_url=f"sqlite:///{tmp_path}/console.sqlite3",
        backup_folder=tmp_path / "elsewhere",
    )
    return tmp_path / "elsewhere"


def page(client) -> str:
    return client.get(reverse("backups")).content.decode()


def backed_up() -> BackupRun:
    """Start a backup, and do the work of the worker."""
    run = backup_runs.start("ada", with_archive=True)
    assert backup_runs.make(run.pk) == State.DONE, BackupRun.objects.get(pk=run.pk).reason
    run.refresh_from_db()
    return run


def test_an_admin_starts_a_backup_downloads_it_and_deletes_it(folder, admin, settings):
    assert "No backups" in page(admin)
    started = admin.post(reverse("start-backup"), follow=True).content.decode()
    [run] = BackupRun.objects.all()
    assert "Backup running. Waiting for a worker" in started
    assert f'hx-get="/backups/?run={run.pk}" hx-trigger="every 2s"' in started
    assert not run.with_archive
    assert "A backup is already running. Wait until it is done." in (
        admin.post(reverse("start-backup"), follow=True).content.decode()
    )
    assert backup_runs.make(run.pk) == State.DONE
    assert backup_runs.make(run.pk) == "nothing to do"
    run.refresh_from_db()
    assert "Backup completed in" in admin.get(f"/backups/?run={run.pk}").content.decode()
    shown = page(admin)
    assert "Backup completed" not in shown, "the end of a backup is news to who waited for it"
    assert f"{command('restore')} {run.file} --replace" in shown
    assert f"{command('restore')} --help" in shown, "an installation from a wheel has no folder of documents"
    assert run.file.name in shown
    assert "Not encrypted" not in shown
    assert 'hx-trigger="every 2s"' not in shown

    sent = admin.get(reverse("download-backup", args=[run.pk]))
    assert b"".join(sent.streaming_content) == run.file.read_bytes()
    assert run.file.name in sent["Content-Disposition"]
    with BackupReader(run.file) as reader:
        reader.unlock(PASSPHRASE)
        assert reader.manifest.broker == settings.SLUICE.broker_name
        assert json.loads(reader.read("secrets.json"))["files"]["secret-key"] == "the key"
        reader.extract("database.sqlite3", folder / "copy")
    assert sqlite3.connect(folder / "copy").execute("SELECT answer FROM one").fetchall() == [(42,)]

    assert "Backup deleted." in admin.post(reverse("delete-backup", args=[run.pk]), follow=True).content.decode()
    assert not run.file.exists()
    assert admin.get(reverse("download-backup", args=[run.pk])).status_code == 404
    told = list(AuditEntry.objects.order_by("id").values_list("action", flat=True))
    assert told == ["start backup", "start backup", "download backup", "delete backup"]


@pytest.mark.parametrize(("asked_by", "said"), [("ada", "ada"), ("", "schedule")])
def test_the_log_names_the_file_of_a_backup_and_who_requested_it(folder, caplog, asked_by, said):
    caplog.set_level("INFO", backup_runs.__name__)
    run = backup_runs.start(asked_by, with_archive=False)
    assert backup_runs.make(run.pk) == State.DONE
    run.refresh_from_db()
    assert caplog.messages[-1] == f"the backup {run.path} is complete: {run.bytes} bytes, requested by {said}"


def test_a_user_chooses_whether_recorded_traffic_is_included(folder, admin):
    BackupSchedule.objects.create(pk=1, with_archive=True)
    assert 'name="with_archive" checked' in page(admin)
    admin.post(reverse("start-backup"), {"with_archive": "on"})
    assert BackupRun.objects.get().with_archive


def test_a_large_file_is_sent_as_it_is_read(tmp_path):
    path = tmp_path / "large"
    path.write_bytes(bytes(3 * FileDownload.block_size))

    async def first_block() -> tuple[int, int]:
        file = path.open("rb")
        with closing(FileDownload(file)) as sent:
            async for block in sent:
                return len(block), file.tell()
        raise AssertionError("nothing was sent")

    size, read = asyncio.run(first_block())
    assert size == FileDownload.block_size
    assert read < 3 * FileDownload.block_size


@pytest.mark.parametrize("length", [1, 1_000, BLOCK_SIZE])
def test_a_text_is_sent_as_it_is_made_whatever_the_size_of_its_pieces(length):
    made = 0

    def pieces():
        nonlocal made
        while made < 3 * BLOCK_SIZE:
            made += length
            yield "a" * length

    async def blocks() -> list[tuple[int, int]]:
        sent = 0
        return [(sent := sent + len(block), made) async for block in in_blocks(pieces())]

    counts = asyncio.run(blocks())
    assert len(counts) == 3
    assert all(sent == made for sent, made in counts), "it was made before it was sent"


def test_programs_list_and_start_backups_and_change_their_schedule(folder, admin):
    started = admin.post("/api/v1/backups", {"with_archive": True}, content_type="application/json")
    assert started.status_code == 202
    assert backup_runs.make(started.json()["id"]) == State.DONE
    [found] = admin.get("/api/v1/backups").json()
    assert (found["state"], found["asked_by"], found["with_archive"]) == ("done", "admin", True)
    assert found["file"] == BackupRun.objects.get().file.name

    wanted = {"cron": "30 3 * * 1", "zone": "Europe/Berlin", "keep": 3, "with_archive": True}
    assert admin.put("/api/v1/backups/schedule", wanted, content_type="application/json").json()["keep"] == 3
    saved = admin.get("/api/v1/backups/schedule").json()
    assert datetime.fromisoformat(saved.pop("due")) > timezone.now()
    assert saved == wanted
    wrong = admin.put("/api/v1/backups/schedule", {"cron": "often"}, content_type="application/json")
    assert wrong.status_code == 409
    assert wrong.json()["detail"].startswith("'often' is not a crontab expression"), "it names no field of the page"


def test_the_first_schedule_comes_with_an_alert_rule(folder, admin):
    fields = {"rhythm": "daily", "time": "02:30", "zone": "UTC", "keep": "5"}
    shown = admin.post(reverse("backup-schedule"), fields, follow=True).content.decode()
    assert "Every day at 02:30, UTC" in shown
    assert "Failed backups" not in admin.get(reverse("backup-schedule")).content.decode(), "the rule is there"
    assert "5 backups" in shown
    [rule] = AlertRule.objects.all()
    assert (rule.name, rule.metric, rule.is_on) == ("Failed backups", "failed-backups", True)
    rule.delete()
    admin.post(reverse("backup-schedule"), {**fields, "rhythm": "never"})
    assert BackupSchedule.load().due is None
    assert not AlertRule.objects.exists()
    assert admin.post(reverse("backup-schedule"), {**fields, "keep": "0"}).status_code == 400


def test_a_backup_that_is_due_is_started_once(folder):
    now = timezone.now()
    BackupSchedule.objects.create(pk=1, cron="* * * * *", due=now - timedelta(minutes=1), with_archive=True)
    run = backup_runs.start_due(now)
    assert (run.state, run.asked_by, run.with_archive) == (State.RUNNING, "", True)
    assert backup_runs.start_due(now) is None
    assert BackupSchedule.load().due > now
    BackupSchedule.objects.update(due=now)
    assert backup_runs.start_due(now) is None, "one is running still"
    assert BackupRun.objects.count() == 1


def test_as_many_backups_are_kept_as_the_schedule_says(folder):
    BackupSchedule.objects.create(pk=1, keep=2)
    runs = []
    for number in range(4):
        runs.append(backed_up())
        BackupRun.objects.filter(pk=runs[-1].pk).update(created=datetime(2026, 1, 1 + number, tzinfo=UTC))
        runs[-1].file.rename(runs[-1].file.with_name(f"{number}.backup"))
        BackupRun.objects.filter(pk=runs[-1].pk).update(path=str(runs[-1].file.with_name(f"{number}.backup")))
    backup_runs.remove_old(2)
    assert sorted(each.name for each in folder.iterdir()) == ["2.backup", "3.backup"]
    assert BackupRun.objects.count() == 2


def test_files_of_the_installation_that_a_copy_was_restored_from_are_not_deleted(folder, settings):
    run = backed_up()
    (settings.SLUICE.data / "configuration.env").touch()
    created = timezone.now() - timedelta(hours=1)
    BackupRun.objects.update(data_folder=run.data_folder + 1, created=created)
    backup_runs.remove_old(0)
    assert run.file.exists()
    assert not BackupRun.objects.exists()


def test_they_are_not_deleted_either_where_both_data_folders_have_the_same_inode(folder, admin, settings):
    """As roots of file systems have, which containers mount."""
    run = backed_up()
    later = timezone.now().timestamp() + 60
    (settings.SLUICE.data / "configuration.env").touch()
    os.utime(settings.SLUICE.data / "configuration.env", (later, later))
    assert "Its file stays, as another installation or host made it." in page(admin)
    backup_runs.remove_old(0)
    assert run.file.exists()
    assert not BackupRun.objects.exists()


def test_a_backup_of_another_host_is_left_to_that_host(folder):
    own = backed_up()
    BackupRun.objects.create(
        state=State.DONE, host="mars", data_folder=own.data_folder + 1, path="/on/mars/orders.backup"
    )
    assert backup_runs.remove_old(0) == 1
    assert not own.file.exists()
    assert [each.host for each in BackupRun.objects.all()] == ["mars"], "its file would stay for ever"


def test_a_backup_that_fails_raises_an_alert_and_says_why(folder, admin, settings, monkeypatch):
    monkeypatch.setattr(retry_schedule, "enqueue", lambda task, delivery: alert_delivery.deliver(delivery))
    AlertRule.objects.create(
        name="Failed backups", metric="failed-backups", threshold=0, author="ada", mail="ada@example.org"
    )
    folder.parent.joinpath("file").touch()
    settings.SLUICE = replace(settings.SLUICE, backup_folder=folder.parent / "file")
    run = backup_runs.start("", with_archive=False)
    assert backup_runs.make(run.pk) == State.FAILED
    assert "File exists" in page(admin)
    evaluation.evaluate(mirror().current(), timezone.now().timestamp())
    firing = AlertFiring.objects.get()
    assert firing.state == AlertFiring.State.FIRING
    run.refresh_from_db()
    assert "File exists" in run.reason
    assert firing.sentence == f"broker: number of failed backups is 1, above 0. Last failure: {run.reason}"

    settings.SLUICE = replace(settings.SLUICE, backup_folder=folder)
    backed_up()
    evaluation.evaluate(mirror().current(), timezone.now().timestamp())
    firing.refresh_from_db()
    assert firing.state == AlertFiring.State.ENDED
    assert len(mail.outbox) == 2, "of the failure and of its end"
    for each in mail.outbox:
        assert firing.sentence in each.body
        assert f"Backups: {settings.SLUICE.console_url}{reverse('backups')}" in each.body
        assert "/queues/" not in each.body


def test_a_backup_without_a_passphrase_is_said_to_lack_secrets(folder, admin, monkeypatch):
    monkeypatch.delenv("SLUICE_BACKUP_PASSPHRASE")
    run = backed_up()
    assert not run.is_encrypted
    assert "Backups are not encrypted." in page(admin)
    assert any(each.startswith("secrets, as the backup is not encrypted: ") for each in run.left_out)


def lost_after_a_look(now: datetime | None = None, **fields) -> str | None:
    """Return why a backup with these fields is lost, if it is; None for one that is forgotten."""
    BackupRun.objects.all().delete()
    fields = {"host": socket.gethostname(), "data_folder": data_folder_id(), "pid": os.getpid()} | fields
    run = BackupRun.objects.create(**fields)
    backup_runs.fail_lost(now or timezone.now())
    found = BackupRun.objects.filter(pk=run.pk).first()
    return found.reason if found else None


def test_a_backup_is_lost_when_its_process_has_ended_or_is_silent_on_whichever_host(folder, settings):
    dead = os.fork()
    if not dead:
        os._exit(0)
    os.waitpid(dead, 0)
    now = timezone.now()
    assert lost_after_a_look() == ""
    assert lost_after_a_look(pid=dead) == "Its worker process ended before it was done."
    other = {"host": "mars", "data_folder": 1, "pid": dead}
    assert lost_after_a_look(**other) == "", "its process is not of this host"
    assert lost_after_a_look(now + timedelta(hours=3), heartbeat=now + timedelta(hours=3), **other) == ""
    assert lost_after_a_look(now + timedelta(minutes=11), heartbeat=now, **other) == (
        "Nothing was heard of its worker process on mars for 10 minutes."
    )
    assert lost_after_a_look(now + timedelta(minutes=61), pid=None, host="") == "No worker took it in time."
    (settings.SLUICE.data / "configuration.env").touch()
    assert lost_after_a_look() == ""
    BackupRun.objects.update(created=now - timedelta(minutes=5), data_folder=1)
    assert backup_runs.fail_lost(now) == 0
    assert not BackupRun.objects.exists(), "it was running elsewhere when this database was backed up"


def test_the_database_lets_one_backup_run_at_a_time(folder):
    first = backup_runs.start("ada", with_archive=False)
    with pytest.raises(IntegrityError), transaction.atomic():
        BackupRun.objects.create()
    with pytest.raises(RequestRefused, match=r"A backup is already running\. Wait until it is done\."):
        backup_runs.start("ada", with_archive=False)
    BackupRun.objects.filter(pk=first.pk).update(created=timezone.now() - timedelta(hours=2))
    assert backup_runs.start("ada", with_archive=False).state == State.RUNNING, "the first one was lost"


def test_backups_of_two_installations_into_one_folder_leave_each_other_alone(folder):
    folder.mkdir()
    with BackupWriter(folder / "billing-20261128T020000Z.backup", None) as other:
        other.add("part", b"content")
        run = backed_up()
        other.finish(BackupManifest("billing", "mars", "2026-11-28T02:00:00.000+00:00", "1.0.0"))
    assert {each.name for each in folder.iterdir()} == {run.file.name, other.path.name}


def test_backups_of_one_second_have_names_of_their_own_that_sort_by_time_after_those_of_former_versions(folder):
    folder.mkdir()
    former = folder / "orders-20261128T020000Z.backup"
    moment = datetime(2026, 11, 28, 2, 0, 1, tzinfo=UTC)
    made = []
    for microseconds in (0, 0, 0, 7):
        made.append(backup_runs.new_file(folder, "orders", moment + timedelta(microseconds=microseconds)))
        made[-1].touch()
    assert [each.name for each in made] == sorted({each.name for each in made}), "none is there twice"
    assert former.name < made[0].name < "orders-20261128T020002Z.backup"


def test_two_backups_within_one_second_both_succeed(folder):
    second, made = timezone.now().replace(microsecond=0), []
    for microseconds in (1, 2):
        run = backup_runs.start("ada", with_archive=False)
        BackupRun.objects.filter(pk=run.pk).update(created=second + timedelta(microseconds=microseconds))
        assert backup_runs.make(run.pk) == State.DONE, BackupRun.objects.get(pk=run.pk).reason
        made.append(BackupRun.objects.get(pk=run.pk).file)
    assert sorted(folder.iterdir()) == made


def test_a_copy_makes_no_backups_on_schedule_and_sends_no_notifications(folder, admin, settings):
    write_mark(settings.SLUICE.data, RestoredMark(RestoredRole.COPY, "orders", "mars", "2026-11-28T10:00:00.000+00:00"))
    restored_copy._mark_of.cache_clear()
    now = timezone.now()
    BackupSchedule.objects.create(pk=1, cron="* * * * *", due=now - timedelta(minutes=1))
    assert backup_runs.start_due(now) is None
    rule = AlertRule.objects.create(name="r", metric="depth", threshold=0, author="ada", mail="ada@example.org")
    firing = AlertFiring.objects.create(rule=rule, rule_name="r", subject="q", since=now, value=1, worst=1)
    alert_delivery.queue_notifications(rule, firing, "fired", now)
    [delivery] = AlertDelivery.objects.all()
    assert (delivery.state, delivery.detail) == ("held", "this installation is a copy, which sends no notifications")
    shown = page(admin)
    assert "Copy of broker <strong>orders</strong>" in shown
    assert "on\n    mars, backup of 2026-11-28 10:00:00 UTC" in shown
    assert "(off, as this installation is a copy)" in shown
    assert admin.get("/api/v1/backups/schedule").json()["due"] is None


def test_an_installation_is_restored_elsewhere_and_does_not_start_until_its_role_is_said(
    folder, settings, tmp_path, monkeypatch, capsys
):
    run, data = backed_up(), tmp_path / "restored"
    (tmp_path / "passphrase").write_text(PASSPHRASE)
    for name in ("REDIS_URL", "DATABASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SLUICE_DATA", str(data))
    monkeypatch.setenv("SLUICE_BROKER", settings.SLUICE.broker_name)
    data.mkdir()
    (data / "secret-key").write_text("a key that a command made")
    assert command_line.restore([str(run.file)], "manage.py restore") == 0
    said = capsys.readouterr().out
    assert "  manage.py restore --replace   if the original no longer runs\n" in said
    assert f"Then: SLUICE_DATA={data} {command('up')}\n" in said
    assert (data / "secret-key").read_text() == "the key"
    with closing(sqlite3.connect(data / "console.sqlite3")) as database:
        assert database.execute("SELECT answer FROM one").fetchall() == [(42,)]
    settings.SLUICE = replace(settings.SLUICE, data=data)
    with pytest.raises(CommandError, match=f"run `{command('restore')} --replace` if the original no longer runs"):
        call_command("up")
    assert command_line.restore(["--as-copy"], "manage.py restore") == 0
    assert json.loads((data / "restored.json").read_text())["role"] == "copy"
    assert command_line.restore(["--replace"], "manage.py restore") == 0
    assert not (data / "restored.json").exists()
    assert command_line.restore([str(run.file)], "manage.py restore") == 1
    assert "console.sqlite3 exists: restore into an empty folder" in capsys.readouterr().err


def test_only_admins_see_backups(folder, browser_of):
    for client in map(browser_of, ("operator", "viewer")):
        assert client.get(reverse("backups")).status_code == 403
        assert "/backups/" not in client.get(reverse("overview")).content.decode()
