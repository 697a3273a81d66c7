"""Test that rules are evaluated once, and that alerts are stored and sent by mail and webhook, within limits."""

import http.server
import json
import re
import socket
import ssl
import threading
import time
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email import message_from_bytes
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest
from django.core import mail
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from brokerapp.connections.installation_tls import tls_stores
from brokerapp.connections.key_stores import read_certificate
from brokerapp.errors import RequestRefused
from brokerapp.model.destination import Destination
from brokerapp.model.stats_records import DestinationStats, ListenerStats, NodeStatus
from brokerapp.model.time_series import FINE, BrokerPoint, DestinationPoint, pack_point
from brokerapp.store.history_rings import BROKER_RING
from console.accounts.rate_limit import RateLimit
from console.alerts import active_alerts, backtest_service, send_test
from console.alerts.delivery import alert_delivery, retry_schedule, webhook
from console.alerts.delivery.models import AlertDelivery, AlertFiring, AlertRule
from console.alerts.evaluation import evaluate
from console.audit.models import AuditEntry
from console.broker.gateway import gateway
from console.broker.snapshot import BrokerSnapshot, apply_tick, initial_snapshot, mark_stale
from tests.certificates import Authority
from tests.console.conftest import waiting_tasks

NOW = 1_700_000_000
A = Destination.queue("orders.a")


@pytest.fixture(autouse=True)
def nothing_remembered(monkeypatch):
    for limit in ("_TESTS", "_TOLD"):
        kept = getattr(send_test, limit)
        monkeypatch.setattr(send_test, limit, RateLimit(kept.per_second, kept.burst))
    active_alerts.invalidate()
    yield
    active_alerts.invalidate()


@pytest.fixture
def asked(monkeypatch) -> list:
    """Deliveries that workers were asked for; the test is the worker."""
    found = []
    monkeypatch.setattr(retry_schedule, "enqueue", lambda task, delivery: found.append(delivery))
    return found


def holding(depth: int, now: float = NOW) -> BrokerSnapshot:
    return apply_tick(
        initial_snapshot(now, 1, [DestinationStats(A, QueueSize=depth)], BrokerSnapshot()),
        now,
        [NodeStatus("n", "b", 0, 0)],
    )


def rule(**more) -> AlertRule:
    values = {"name": "deep", "metric": "depth", "threshold": 10, "hold": 60, "author": "ada"} | more
    return AlertRule.objects.create(**values)


def looks(*depths: int, every: int = 30) -> None:
    for step, depth in enumerate(depths):
        evaluate(holding(depth, NOW + every * step), NOW + every * step)


def test_a_certificate_that_expires_soon_fires_until_it_is_renewed_also_while_no_node_runs(db, settings, tmp_path):
    rule(name="certificate", metric="certificate-days", threshold=21, below=True, hold=0)
    now, without_nodes = time.time(), apply_tick(holding(1), NOW, [])
    evaluate(without_nodes, now)
    assert not AlertFiring.objects.exists(), "there is no certificate"
    settings.SLUICE = replace(settings.SLUICE, tls_certificate=str(Authority(tmp_path).pem), console_tls=True)
    evaluate(without_nodes, now)
    firing = AlertFiring.objects.get()
    assert firing.sentence == "console: time until the certificate expires is 1 day, below 21"
    evaluate(without_nodes, now + 3 * 86_400)
    assert AlertFiring.objects.get().worst == 0, "it has expired"
    evaluate(without_nodes, now - 21 * 86_400)
    assert AlertFiring.objects.get().state == AlertFiring.State.ENDED


def test_the_certificate_of_the_installation_keeps_its_name_while_its_nodes_come_and_go(db, settings, tmp_path):
    rule(name="certificate", metric="certificate-days", threshold=21, below=True, hold=0)
    settings.SLUICE = replace(settings.SLUICE, tls_certificate=str(Authority(tmp_path).pem), console_tls=False)
    now = time.time()
    own = int(read_certificate(tls_stores(settings.SLUICE).key_store).valid_until.timestamp())
    listeners = [ListenerStats("ssl", "ssl://a", certificate_until=own).to_json()]
    running = NodeStatus("a", "b", 0, 0, name="a", listeners=listeners)
    for nodes in ([running], [], [running]):
        evaluate(apply_tick(holding(1), NOW, nodes), now)
    assert [each.subject for each in AlertFiring.objects.all()] == ["SLUICE_TLS_CERTIFICATE"]
    broken = tmp_path / "broken.pem"
    broken.write_text("no certificate")
    settings.SLUICE = replace(settings.SLUICE, tls_certificate=str(broken))
    evaluate(apply_tick(holding(1), NOW, [running]), now)
    assert "node a" in {each.subject for each in AlertFiring.objects.all()}, "nodes are judged all the same"


def test_certificates_of_all_nodes_fire_each_by_itself(db):
    rule(name="certificate", metric="certificate-days", threshold=21, below=True, hold=0)

    def node(name: str, **days: int) -> NodeStatus:
        ends = [(connector, int(NOW + 86_400 * left) if left else 0) for connector, left in days.items()]
        listeners = [ListenerStats(each, f"tcp://{each}", certificate_until=end).to_json() for each, end in ends]
        return NodeStatus(name, "b", 0, 0, name=name, listeners=listeners)

    earlier = NodeStatus("c", "b", 0, 0, name="c", listeners=[{"connector": "ssl", "address": "ssl://c:1"}])
    nodes = [node("a", ssl=20, wss=20, stomp=0), node("b", ssl=90, wss=2), earlier]
    evaluate(apply_tick(holding(1), NOW, nodes), NOW)
    assert sorted(each.sentence for each in AlertFiring.objects.all()) == [
        "node a: time until the certificate expires is 20 days, below 21",
        "node b: time until the certificate expires is 2 days, below 21",
    ]


def test_it_is_pending_then_fires_then_ends_and_is_kept(db, asked):
    rule(mail="ada@example.org")
    looks(11)
    assert AlertFiring.objects.get().state == "pending"
    looks(11, 12, 99)
    firing = AlertFiring.objects.get()
    assert (firing.state, firing.worst, firing.subject) == ("firing", 99, str(A))
    assert firing.sentence == "orders.a: depth is 99 messages, above 10"
    looks(11, 12, 13, 0)
    firing.refresh_from_db()
    assert (firing.state, (firing.ended - firing.since).total_seconds()) == ("ended", 90)
    assert [each.event for each in AlertDelivery.objects.order_by("id")] == ["fired", "ended"]


def test_beside_what_was_told_stands_what_it_is_now(admin, asked):
    rule(hold=0)
    looks(203, 225)
    assert "depth is 203 messages, above 10 (now 225 messages)" in seen_text(admin)


def seen_text(browser) -> str:
    return browser.get(reverse("alerts")).content.decode()


def test_what_is_over_before_its_time_told_nobody(db, asked):
    rule(mail="ada@example.org")
    looks(11, 0)
    assert not AlertFiring.objects.exists()
    assert not AlertDelivery.objects.exists()


def test_a_broker_that_does_not_answer_neither_fires_nor_ends_anything(db, asked):
    rule(hold=0)
    looks(11)
    evaluate(mark_stale(holding(0), "gone"), NOW + 60)
    assert AlertFiring.objects.get().state == "firing"


def test_a_node_that_has_told_of_no_destination_yet_ends_nothing(db, asked):
    rule(hold=0)
    evaluate(holding(11), NOW)
    evaluate(
        apply_tick(initial_snapshot(NOW + 5, 1, [], BrokerSnapshot()), NOW + 5, [NodeStatus("n", "b", 0, 0)]), NOW + 5
    )
    assert AlertFiring.objects.get().state == "firing"


def test_a_broker_without_a_node_ends_nothing_that_only_nodes_tell_of(db, asked):
    rule(metric="connections", threshold=2, hold=0)
    rule(name="none", metric="nodes", threshold=1, below=True, hold=0)
    node = NodeStatus("n", "b", 0, 0, connected={"all": 3})
    for second, nodes in enumerate(([node], [])):
        evaluate(apply_tick(holding(0), NOW + second, nodes), NOW + second)
    assert set(AlertFiring.objects.values_list("rule_name", "state")) == {("deep", "firing"), ("none", "firing")}


def test_dead_letters_are_told_of_as_long_as_they_are_new_though_the_node_that_counted_them_is_another(
    console, db, asked
):
    dead, now = Destination.queue("dead.kept"), int(time.time())
    rule(metric="dead-letters", threshold=0, hold=0)
    gateway().run(
        gateway().admin.rings.append(FINE, {str(dead): pack_point(DestinationPoint(now - 20, 3, 3, 0, 0))}, now - 20)
    )
    began_anew = initial_snapshot(now, 1, [DestinationStats(dead, QueueSize=3, DLQ=True)], BrokerSnapshot())
    for later, state in ((0, "firing"), (300, "firing"), (1400, "firing"), (1401, "ended")):
        if later > 1400:  # until then Sluice was stopped, or nobody looked: that makes nothing good
            looked = [pack_point(BrokerPoint(now + each, *[0] * 8)) for each in range(790, 1401, 30)]
            for each in looked:
                gateway().run(gateway().admin.rings.append(FINE, {BROKER_RING: each}, now))
        evaluate(apply_tick(began_anew, now + later, [NodeStatus("n", "b", 0, 0)]), now + later)
        assert AlertFiring.objects.get().state == state


def test_the_page_of_a_rule_says_how_many_destinations_it_cannot_judge(console, admin, monkeypatch):
    row = rule(metric="dead-letters", threshold=0, hold=0)
    dead = [DestinationStats(Destination.queue(f"dead.without.{each}"), DLQ=True) for each in "ab"]
    picture = initial_snapshot(NOW, 1, [*dead, DestinationStats(A)], BrokerSnapshot())
    monkeypatch.setattr(backtest_service, "mirror", lambda: SimpleNamespace(current=lambda: picture))
    for most, expected in ((1_000_000, False), (0, True)):
        monkeypatch.setattr(backtest_service, "MAX_DESTINATIONS", most)
        text = admin.get(reverse("edit-alert", args=[row.pk])).content.decode()
        assert ("2 destinations of this rule have no history" in text) is expected


def test_what_was_open_goes_on_after_a_restart_and_is_told_once(db, asked):
    rule(hold=0, mail="ada@example.org")
    looks(11)
    looks(11, 11, 11)  # another process, which remembers nothing
    assert AlertFiring.objects.count() == 1
    assert AlertDelivery.objects.count() == 1


def test_a_rule_that_is_switched_off_or_gone_leaves_nothing_open(db, asked):
    row = rule(hold=0)
    looks(11)
    row.is_on = False
    row.save()
    looks(11)
    assert AlertFiring.objects.get().state == "ended"


@pytest.mark.parametrize(
    ("over", "reason"),
    [(lambda row: AlertRule.objects.filter(pk=row.pk).update(is_on=False), "rule disabled"),
     (lambda row: row.delete(), "rule deleted")],
    ids=["off", "deleted"],
)  # fmt: skip
def test_who_was_told_that_it_fired_is_told_that_it_is_over_when_its_rule_is_off_or_gone(db, asked, over, reason):
    row = rule(hold=0, mail="ada@example.org", webhook="http://127.0.0.1:9/hook")
    looks(11)
    over(row)
    looks(11, 11)
    ends = AlertDelivery.objects.exclude(event="fired").order_by("id")
    assert [each.kind for each in ends] == ["mail", "webhook"]
    document = alert_delivery.document_of(ends[1])
    assert (document["event"], document["reason"]) == ("ended", reason)
    AlertDelivery.objects.update(due=timezone.now())
    assert alert_delivery.deliver(ends[0].pk) == "sent"
    assert "Resolved: deep" in mail.outbox[-1].subject
    assert f"({reason})." in mail.outbox[-1].body


def test_a_silenced_rule_is_judged_and_shown_but_told_to_nobody(db, asked):
    rule(hold=0, mail="ada@example.org", silenced_until=timezone.now() + timedelta(days=9999))
    looks(11)
    assert AlertFiring.objects.get().state == "firing"
    assert not AlertDelivery.objects.exists()


def test_too_many_within_the_hour_are_held_and_said_so(db, asked, monkeypatch):
    monkeypatch.setattr(alert_delivery, "MAX_AN_HOUR", 3)
    monkeypatch.setattr(timezone, "now", lambda: datetime.fromtimestamp(NOW, UTC))
    rule(hold=0, mail="ada@example.org")
    looks(11, 0, 11, 0, 11)
    states = list(AlertDelivery.objects.order_by("id").values_list("state", flat=True))
    assert states == ["queued", "queued", "queued", "held", "held"]


def test_a_mail_says_what_fires_and_marks_itself(db, asked, settings):
    rule(name="deep\nBcc: eve@example.org", hold=0, mail="ada@example.org, bob@example.org")
    looks(11)
    assert [alert_delivery.deliver(each) for each in asked] == ["sent", "sent"]
    assert [each.to for each in mail.outbox] == [["ada@example.org"], ["bob@example.org"]]
    assert "deep Bcc: eve@example.org: queue://orders.a" in mail.outbox[0].subject
    assert "depth is 11 messages" in mail.outbox[0].body
    base, firing = settings.SLUICE.console_url, AlertFiring.objects.get()
    assert f"{base}/alerts/{firing.pk}/" in mail.outbox[0].body
    assert f"{base}/queues/orders.a/" in mail.outbox[0].body
    assert mail.outbox[0].extra_headers[alert_delivery.MARK_HEADER] == "deep Bcc: eve@example.org"
    assert alert_delivery.deliver(asked[0]) == "nothing to do"  # a task that comes twice sends once


def test_without_a_mail_server_each_mail_is_a_file_that_mail_programs_open(settings, tmp_path):
    settings.EMAIL_FILE_PATH = tmp_path / "outbox"
    for each in ("one", "two"):
        mail.get_connection("console.ops.file_mail_backend.EmailBackend").send_messages(
            [mail.EmailMessage(each, "text", to=["a@b.c"])]
        )
    found = [message_from_bytes(path.read_bytes()) for path in settings.EMAIL_FILE_PATH.glob("*.eml")]
    assert sorted(each["Subject"] for each in found) == ["one", "two"]
    assert found[0].get_payload().strip() == "text"


class Receiver(http.server.BaseHTTPRequestHandler):
    """A program that is told; `status` is what it answers."""

    status, got = 200, []

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.got.append((dict(self.headers), body))
        self.send_response(self.status)
        self.send_header("Location", "/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args) -> None:
        """Say nothing."""


@pytest.fixture
def receiver():
    Receiver.status, Receiver.got = 200, []
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/hook"
    server.shutdown()
    server.server_close()


def test_a_webhook_gets_json_that_is_signed(db, asked, receiver):
    rule(hold=0, webhook=receiver, secret="hush")
    looks(11)
    assert alert_delivery.deliver(asked[0]) == "sent"
    [(headers, body)] = Receiver.got
    document = json.loads(body)
    assert (document["event"], document["rule"], document["subject"], document["value"]) == (
        "fired",
        "deep",
        str(A),
        11,
    )
    assert headers[alert_delivery.SIGNATURE_HEADER] == alert_delivery.signature("hush", body)
    assert headers[alert_delivery.MARK_HEADER]


@pytest.mark.parametrize("status", [500, 404, 302])
def test_a_webhook_that_refuses_is_tried_again_later_and_gives_up_in_the_end(db, asked, receiver, status):
    Receiver.status = status
    rule(hold=0, webhook=receiver)
    looks(11)
    delivery = AlertDelivery.objects.get()
    for attempt in range(1, len(alert_delivery.RETRIES) + 1):
        before = timezone.now()
        AlertDelivery.objects.update(due=before)  # the time has come
        assert alert_delivery.deliver(delivery.pk) == "queued"
        delivery.refresh_from_db()
        assert delivery.attempts == attempt
        assert delivery.due >= before + timedelta(seconds=alert_delivery.RETRIES[attempt - 1])
    assert alert_delivery.deliver(delivery.pk) == "nothing to do", "before its time"
    AlertDelivery.objects.update(due=timezone.now())
    assert alert_delivery.deliver(delivery.pk) == "failed"
    delivery.refresh_from_db()
    assert str(status) in delivery.detail
    assert len(Receiver.got) == len(alert_delivery.RETRIES) + 1  # and nobody followed the redirect


def test_the_end_of_an_alert_is_signed_with_the_secret_of_its_rule_after_the_rule_was_deleted(db, asked, receiver):
    row = rule(hold=0, webhook=receiver, secret="hush")
    looks(11)
    row.delete()  # before the first notification was sent, and with the firing still open
    looks(11)
    AlertDelivery.objects.update(due=timezone.now())
    numbers = AlertDelivery.objects.order_by("id").values_list("pk", flat=True)
    assert [alert_delivery.deliver(each) for each in numbers] == ["sent", "sent"]
    assert [json.loads(body)["event"] for _, body in Receiver.got] == ["fired", "ended"]
    assert [headers[alert_delivery.SIGNATURE_HEADER] for headers, _ in Receiver.got] == [
        alert_delivery.signature("hush", body) for _, body in Receiver.got
    ]


def test_a_test_is_really_sent_marked_as_one_and_its_outcome_is_shown_and_recorded(
    admin, console, asked, receiver, settings
):
    settings.MAIL_OUTBOX = ""  # a mail server is named
    row = rule(mail="ada@example.org, bob@example.org", webhook=receiver, secret="hush")
    careful = Client(enforce_csrf_checks=True)
    careful.cookies = admin.cookies
    asked_for = careful.get(reverse("edit-alert", args=[row.pk])).content.decode().partition("send-test")[2]
    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', asked_for)[1]
    form = {"csrfmiddlewaretoken": token}
    page = careful.post(reverse("send-test-alert", args=[row.pk]), form).content.decode()
    assert page.count("Test email sent to") == 2
    assert "Test posted to" in page
    assert {each.to[0] for each in mail.outbox} == {"ada@example.org", "bob@example.org"}
    [subject] = {each.subject for each in mail.outbox}
    assert "Test: deep" in subject
    assert "Test notification." in mail.outbox[0].body
    assert reverse("edit-alert", args=[row.pk]) in mail.outbox[0].body
    [(headers, body)] = Receiver.got
    document = json.loads(body)
    assert document["event"] == "test"
    assert [document[name] for name in ("id", "value", "worst", "fired", "ended")] == [None] * 5
    assert headers[alert_delivery.SIGNATURE_HEADER] == alert_delivery.signature("hush", body)
    assert (AlertFiring.objects.count(), AlertDelivery.objects.count()) == (0, 0), "nothing fired"
    entry = AuditEntry.objects.get(action="test alert rule")
    assert (entry.object, entry.outcome, entry.after[f"webhook {receiver}"]) == ("deep", "done", "sent")


def test_a_test_that_fails_says_why_for_each_and_is_not_tried_again(admin, console, asked, receiver):
    Receiver.status = 500
    row = rule(mail="ada@example.org", webhook=receiver)
    answer = admin.post(f"/api/v1/alerts/rules/{row.pk}/test")
    assert answer.status_code == 200
    mailed, posted = answer.json()
    assert (mailed["sent"], mailed["reason"]) == (True, "")
    assert not posted["sent"]
    assert "500" in posted["reason"]
    assert len(Receiver.got) == 1
    assert asked == []
    assert "500" in AuditEntry.objects.get(action="test alert rule").after[f"webhook {receiver}"]


def test_a_closed_port_cannot_be_told_from_one_that_does_not_speak_http():
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        port = nobody.getsockname()[1]
    with Odd(b"SSH-2.0-OpenSSH_9.6\r\n") as other, Odd(b"") as silent:
        for url in (f"http://127.0.0.1:{port}/hook", f"https://127.0.0.1:{port}/", other, other.replace("p:", "ps:"),
                    silent):  # fmt: skip
            with pytest.raises(RequestRefused) as refused:
                webhook.post(url, b"{}", {})
            assert str(refused.value) == "Could not connect by HTTP. Details are in the log."


def test_a_certificate_that_is_not_trusted_is_named_with_the_reason(tmp_path):
    identity = Authority(tmp_path).issue("receiver")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(identity.crt, identity.key)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def greet() -> None:
            with suppress(OSError), server.accept()[0] as line:
                context.wrap_socket(line, server_side=True)

        threading.Thread(target=greet, daemon=True).start()
        with pytest.raises(RequestRefused, match=r"^Certificate not trusted: .*certificate"):
            webhook.post(f"https://127.0.0.1:{server.getsockname()[1]}/", b"{}", {})


def test_a_receiver_that_does_not_answer_in_time_is_said_to_have_timed_out(monkeypatch):
    monkeypatch.setattr(webhook, "TIMEOUT", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}/"
        with pytest.raises(RequestRefused, match=r"^Timed out after 0\.3 s$"):
            webhook.post(url, b"{}", {})


def test_a_rule_that_tells_nobody_has_nothing_to_test(admin, console):
    row = rule()
    assert "has no recipients" in admin.post(reverse("send-test-alert", args=[row.pk])).content.decode()
    assert AuditEntry.objects.get(action="test alert rule").outcome == "refused"


def test_tests_are_bounded(admin, console, monkeypatch):
    monkeypatch.setattr(send_test, "_TESTS", RateLimit(per_second=1 / 60, burst=1))
    row = rule(mail="ada@example.org")
    for said in ("Test email written to a file", "Try again in 60 s"):
        assert said in admin.post(reverse("send-test-alert", args=[row.pk])).content.decode()
    assert len(mail.outbox) == 1


def test_what_a_lost_worker_took_is_asked_for_again(db, asked):
    rule(hold=0, mail="ada@example.org")
    looks(11)
    evaluate(holding(11), NOW + 10)
    assert len(asked) == 1
    evaluate(holding(11), NOW + alert_delivery.LOST + 10)
    assert asked == [asked[0]] * 2


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("ftp://example.org/", "is not an http"),
        ("file:///etc/passwd", "is not an http"),
        ("http://169.254.169.254/latest", "never allowed"),
        ("http://[::ffff:169.254.169.254]/latest", "never allowed"),
        ("http://[fd00:ec2::254]/latest", "never allowed"),
        ("http://127.0.0.1:8000/", "Sluice itself"),
        ("http://127.0.0.1:15002/", "Sluice itself"),
        ("http://nowhere.invalid/", r"^Host nowhere\.invalid not found\."),
        ("https:///x", "is not an http"),
        ("http://[x/", "is not an http"),
        ("http://127.0.0.1:99999/", "is not an http"),
        ("http://ada:hush@127.0.0.1:9/hook", "user or a password"),
        ("http://127.0.0.1:9/a b", "percent-encode them"),
        ("http://127.0.0.1:9/ä", "percent-encode them"),
    ],
)
def test_some_addresses_are_told_nothing(url, reason, settings):
    settings.SLUICE = replace(settings.SLUICE, console_port=8000, spark_port=15002)
    with pytest.raises(RequestRefused, match=reason):
        webhook.check_webhook(url)


class Odd:
    """A listener that answers a post with `lines`, one every `pause` seconds, for as long as somebody is there."""

    def __init__(self, *lines: bytes, pause: float = 0) -> None:
        self._lines, self._pause = lines, pause
        self._door = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._door.getsockname()[1]}/hook"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                with self._door.accept()[0] as line, suppress(OSError):
                    line.recv(65536)
                    for each in self._lines:
                        line.sendall(each)
                        time.sleep(self._pause)

    def __enter__(self) -> str:
        return self.url

    def __exit__(self, *_) -> None:
        self._door.shutdown(socket.SHUT_RDWR)
        self._door.close()


@pytest.mark.parametrize(
    "answer", [b"SSH-2.0-OpenSSH_9.6\r\n", b"HTTP/1.1 200 OK\r\nX: " + b"x" * 70_000 + b"\r\n\r\n"]
)
def test_what_answers_otherwise_than_the_web_does_has_not_taken_it_and_is_not_told_of(admin, console, asked, answer):
    with Odd(answer) as url:
        row = rule(hold=0, mail="ada@example.org", webhook=url)
        page = admin.post(reverse("send-test-alert", args=[row.pk])).content.decode()
        assert webhook.NO_CONNECTION in page
        assert "SSH" not in page
        after = AuditEntry.objects.get(action="test alert rule").after
        assert after == {"mail ada@example.org": "sent", f"webhook {url}": webhook.NO_CONNECTION}
        looks(11)
        delivery = AlertDelivery.objects.get(kind="webhook")
        for _ in alert_delivery.RETRIES:
            AlertDelivery.objects.update(due=timezone.now())
            assert alert_delivery.deliver(delivery.pk) == "queued"
        AlertDelivery.objects.update(due=timezone.now())
        assert alert_delivery.deliver(delivery.pk) == "failed"


def test_a_fault_at_one_of_those_who_are_told_is_noted_beside_what_was_sent(admin, console, monkeypatch):
    monkeypatch.setitem(alert_delivery._SENDERS, "webhook", lambda _: 1 / 0)
    row = rule(mail="ada@example.org", webhook="http://127.0.0.1:9/hook")
    assert admin.post(reverse("send-test-alert", args=[row.pk])).status_code == 200
    after = AuditEntry.objects.get(action="test alert rule").after
    assert after["mail ada@example.org"] == "sent"
    assert "internal error" in after["webhook http://127.0.0.1:9/hook"]


@pytest.mark.parametrize(
    ("first", "reason"), [(b"", webhook.NO_CONNECTION), (b"HTTP/1.1 200 OK\r\n", "Timed out after 0.5 s")]
)
def test_a_receiver_that_drips_is_cut_off_in_time(first, reason, monkeypatch):
    monkeypatch.setattr(webhook, "TIMEOUT", 0.5)
    with Odd(first, *[b"X-More: 1\r\n"] * 60, pause=0.1) as url:
        began = time.monotonic()
        with pytest.raises(RequestRefused, match=f"^{reason}$"):
            webhook.post(url, b"{}", {})
        assert time.monotonic() - began < 3


def test_the_body_of_an_answer_is_not_waited_for(monkeypatch):
    with Odd(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", *[b"x"] * 60, pause=0.1) as url:
        began = time.monotonic()
        webhook.post(url, b"{}", {})
        assert time.monotonic() - began < 3


def test_the_address_of_a_webhook_is_for_who_may_change_the_rule(admin, browser_of, console, asked, receiver):
    rule(hold=0, webhook=f"{receiver}/hush?token=quiet")
    looks(11)
    place = receiver.removesuffix("/hook")
    deliveries = f"/api/v1/alerts/firings/{AlertFiring.objects.get().pk}/deliveries"
    viewer = browser_of("viewer")
    for path, name in (("/api/v1/alerts/rules", "webhook"), (deliveries, "target")):
        assert admin.get(path).json()[0][name].endswith("quiet")
        assert viewer.get(path).json()[0][name] == place
    admin.post(reverse("change-alert", args=[AlertRule.objects.get().pk]), {"action": "switch"})
    assert AuditEntry.objects.get(action="switch alert rule").before["webhook"] == f"{receiver}/hush"


def test_tests_of_a_rule_have_the_bound_of_what_it_tells(admin, console, monkeypatch):
    monkeypatch.setattr(send_test, "_TOLD", RateLimit(per_second=1 / 60, burst=3))
    row = rule(mail="ada@example.org, bob@example.org")
    for said in ("Test email written", "notifications per hour"):
        assert said in admin.post(reverse("send-test-alert", args=[row.pk])).content.decode()
    assert len(mail.outbox) == 2


def test_a_name_that_stands_for_another_machine_by_now_is_not_sent_to(receiver, settings, monkeypatch):
    settings.SLUICE = replace(settings.SLUICE, console_port=urlsplit(receiver).port)
    monkeypatch.setattr(webhook, "check_webhook", lambda url: None)  # the name stood for something else then
    with pytest.raises(RequestRefused, match="Sluice itself"):
        webhook.post(receiver, b"{}", {})
    assert not Receiver.got


def test_one_worker_at_a_time_attempts_a_delivery_and_one_that_is_lost_is_followed_by_another(db, monkeypatch):
    said = []
    monkeypatch.setattr(retry_schedule, "enqueue", lambda *_: said.append("asked again"))
    rule(hold=0, mail="ada@example.org")
    looks(11)
    delivery = AlertDelivery.objects.get()
    said.clear()  # it was asked for the first time

    def slow(_delivery):
        said.append(alert_delivery.deliver(delivery.pk))  # the same task once more, meanwhile
        alert_delivery.enqueue_due(timezone.now() + timedelta(seconds=alert_delivery.LOST + 60))

    monkeypatch.setitem(alert_delivery._SENDERS, "mail", slow)
    assert alert_delivery.deliver(delivery.pk) == "sent"
    assert said == ["nothing to do"]
    late = timezone.now() + timedelta(seconds=alert_delivery.LEASE + 1)
    AlertDelivery.objects.update(state="queued", due=timezone.now() - timedelta(seconds=1))  # its worker was lost
    alert_delivery.enqueue_due(late)
    assert said == ["nothing to do", "asked again"]
    delivery.refresh_from_db()
    assert delivery.attempts == 1


def test_a_worker_is_asked_through_celery(admin, console):
    waiting_tasks("default")  # what others left there
    rule(hold=0, mail="ada@example.org")
    looks(11)
    assert waiting_tasks("default") == [("console.deliver_alert", [AlertDelivery.objects.get().pk])]


# -- pages

FORM = {"name": "deep", "metric": "depth", "pattern": "orders.>", "below": "", "threshold": "10", "hold": "60"}


def test_an_operator_makes_a_rule_changes_it_and_the_trail_keeps_no_secret(browser_of, console):
    operator = browser_of("operator")
    made = operator.post(
        reverse("new-alert"), {**FORM, "mail": "ada@example.org", "webhook": "http://127.0.0.1:9/x"}, follow=True
    )
    row = AlertRule.objects.get()
    assert (row.pattern, row.hold, row.author) == ("orders.>", 60, "operator")
    assert row.secret
    assert row.secret in made.content.decode()  # once
    secret = row.secret
    operator.post(reverse("edit-alert", args=[row.pk]), {**FORM, "threshold": "20"})
    row.refresh_from_db()
    assert (row.threshold, row.secret) == (20, secret)
    trail = json.dumps(list(AuditEntry.objects.values("before", "after")))
    changed = AuditEntry.objects.get(action="change alert rule")
    assert ("above 10" in changed.before["rule"], "above 20" in changed.after["rule"]) == (True, True)
    assert secret not in trail
    assert secret not in operator.get(reverse("edit-alert", args=[row.pk])).content.decode()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("pattern", "x://y"), ("threshold", "-1"), ("hold", "999999999"), ("metric", "mood"), ("mail", "no address"),
        ("webhook", "ftp://x"), ("name", ""),
    ],
)  # fmt: skip
def test_a_rule_that_makes_no_sense_is_refused_with_the_reason(browser_of, console, field, value):
    answer = browser_of("operator").post(reverse("new-alert"), {**FORM, field: value})
    assert answer.status_code == 400
    assert answer.context["form"].errors[field]
    assert not AlertRule.objects.exists()


@pytest.mark.parametrize(
    ("metric", "typed", "field"),
    [("links-down", {"below": "1"}, "below"), ("brokers-away", {"threshold": "1"}, "threshold")],
)
def test_what_is_away_is_no_number_that_may_be_small_or_large(browser_of, console, metric, typed, field):
    form = {**FORM, "metric": metric, "pattern": ">", "threshold": "0"}
    answer = browser_of("operator").post(reverse("new-alert"), {**form, **typed})
    assert list(answer.context["form"].errors) == [field]


def test_what_the_history_holds_in_all_only_is_said_not_to_be_tried(browser_of, console):
    form = {**FORM, "metric": "links-down", "pattern": ">"}
    said = [
        browser_of("operator", name=each).post(reverse("test-alert"), {**form, "threshold": each}).content.decode()
        for each in "01"
    ]
    assert ["only the total" in each for each in said] == [False, True]


def test_a_rule_is_tried_on_the_last_day_before_it_is_saved(browser_of, console):
    text = browser_of("operator").post(reverse("test-alert"), FORM).content.decode()
    assert "Would not have fired" in text
    assert "Threshold" in browser_of("admin").post(reverse("test-alert"), {**FORM, "threshold": ""}).content.decode()
    assert not AlertRule.objects.exists()


def test_a_rule_is_silenced_heard_again_switched_and_deleted(browser_of, console):
    operator, row = browser_of("operator"), rule()
    url = reverse("change-alert", args=[row.pk])
    operator.post(url, {"action": "silence", "hours": "8"})
    row.refresh_from_db()
    assert timedelta(hours=7) < row.silenced_until - timezone.now() < timedelta(hours=9)
    operator.post(url, {"action": "hear"})
    operator.post(url, {"action": "switch"})
    row.refresh_from_db()
    assert (row.silenced_until, row.is_on) == (None, False)
    operator.post(url, {"action": "delete"})
    assert not AlertRule.objects.exists()
    assert AuditEntry.objects.filter(outcome="done").count() == 4


def test_rules_are_for_who_has_the_right_for_all_they_are_about(browser_of, console):
    narrow, row = (
        browser_of("operator", "elsewhere.>"),
        rule(name="all", pattern=">", webhook="http://127.0.0.1:9/hooks/secret"),
    )
    for page, form in (
        (reverse("new-alert"), FORM),
        (reverse("new-alert"), {**FORM, "pattern": ">"}),
        (reverse("test-alert"), FORM),
        (reverse("edit-alert", args=[row.pk]), {**FORM, "pattern": "elsewhere.a"}),
        (reverse("change-alert", args=[row.pk]), {"action": "delete"}),
    ):
        assert narrow.post(page, form).status_code == 403
    narrow.post(reverse("new-alert"), {**FORM, "name": "mine", "pattern": "elsewhere.a"})
    assert set(AlertRule.objects.values_list("name", flat=True)) == {"all", "mine"}
    assert "secret" not in browser_of("viewer").get(reverse("alerts")).content.decode()


def test_what_fires_is_on_every_page_and_only_for_who_sees_it(browser_of, console, asked):
    rule(hold=0)
    looks(11)
    viewer = browser_of("viewer")
    for page in ("overview", "queues"):
        assert viewer.get(reverse(page)).context["bell"]["count"] == "1"
    assert "depth is 11 messages" in viewer.get(reverse("alerts")).content.decode()
    firing = AlertFiring.objects.get()
    assert viewer.get(reverse("firing", args=[firing.pk])).status_code == 200
    elsewhere = browser_of("viewer", "elsewhere.>", name="guest")
    assert elsewhere.get(reverse("queues")).context["bell"]["count"] == ""
    assert "depth is 11" not in elsewhere.get(reverse("alerts")).content.decode()


def test_the_link_to_a_rule_fills_in_its_name(admin):
    page = admin.get(reverse("new-alert") + "?metric=dead-letters&threshold=0").content.decode()
    assert 'name="name" type="text" maxlength="80" required value="Dead letters"' in " ".join(page.split())
    assert "No mail server configured" in page
