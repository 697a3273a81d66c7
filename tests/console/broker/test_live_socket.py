"""Test the live socket: permissions, frames, and slow or lost brokers and clients."""

import asyncio
import json
from urllib.parse import urlencode

import pytest
from asgiref.testing import ApplicationCommunicator
from django.conf import settings
from django.contrib.sessions.backends.db import SessionStore
from django.test import Client
from django.urls import reverse

from brokerapp.model.destination import Destination
from brokerapp.store.redis import RedisStore
from console.access.models import Assignment
from console.accounts import effective_rights, impersonation
from console.analyses import run_service
from console.analyses.models import AnalysisRun
from console.broker.live.socket import LOGGED_OUT, MAX_TOPICS, SEEN_OTHERWISE
from console.broker.mirror import mirror
from tests.console.conftest import make_user
from tests.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)
PATIENCE = 20  #: seconds; a deadline for a busy machine, not a pause


@pytest.fixture
def session_of(db):
    """A function from a role, and scopes, to the cookie of a session with it."""

    def session(role: str, *scopes: str) -> str:
        client = Client()
        client.force_login(make_user(role, *scopes))
        return client.cookies[settings.SESSION_COOKIE_NAME].value

    return session


class Socket(ApplicationCommunicator):
    """The client's side of a live socket (channels.testing has one, but wants a server that we do not use)."""

    async def connect(self) -> bool:
        """Whether the socket is accepted."""
        await self.send_input({"type": "websocket.connect"})
        return (await self.receive_output(PATIENCE))["type"] == "websocket.accept"

    async def send_json_to(self, message) -> None:
        """Send a message."""
        await self.send_input({"type": "websocket.receive", "text": json.dumps(message)})

    async def receive_json_from(self) -> dict:
        """The next message."""
        output = await self.receive_output(PATIENCE)
        assert output["type"] == "websocket.send", output
        return json.loads(output["text"])

    async def disconnect(self) -> None:
        """The tab is closed."""
        await self.send_input({"type": "websocket.disconnect", "code": 1001})
        await self.wait(PATIENCE)


def socket(session: str = "", origin: str = "http://testserver", shown_to: str = "", **loaded_by: str) -> Socket:
    from console.asgi import application

    headers = [
        (b"origin", origin.encode()),
        (b"host", b"testserver"),
        (b"cookie", f"{settings.SESSION_COOKIE_NAME}={session}".encode()),
    ]
    scope = {"type": "websocket", "path": "/live", "headers": headers, "subprotocols": []}
    return Socket(application, {**scope, "query_string": urlencode({"as": shown_to, **loaded_by}).encode()})


async def frame_with(live: Socket, topic: str, wanted=lambda cells: True) -> dict:
    """The cells of the first frame on the topic that are wanted."""
    async with asyncio.timeout(2 * PATIENCE):
        while True:
            message = await live.receive_json_from()
            cells = message.get("topics", {}).get(topic)
            if cells is not None and wanted(cells):
                return cells


async def end_of(live: Socket) -> int:
    """The code with which the server closes it."""
    async with asyncio.timeout(2 * PATIENCE):
        while (output := await live.receive_output(PATIENCE))["type"] != "websocket.close":
            pass
    return output["code"]


async def test_anonymous_is_turned_away(console):
    live = socket()
    await live.connect()
    assert (await live.receive_output(PATIENCE))["code"] == LOGGED_OUT


async def test_another_site_gets_no_socket(console, session_of):
    session = await asyncio.to_thread(session_of, "admin")
    accepted = await socket(session, "http://evil.example").connect()
    assert not accepted


async def test_frames_hold_everything_first_and_then_only_what_changed(console, session_of):
    live = socket(await asyncio.to_thread(session_of, "viewer"))
    await live.connect()
    await live.send_json_to({"type": "subscribe", "topic": "overview"})
    first = await frame_with(live, "overview")
    assert {"sentence", "pending", "enqueue", "attention_html"} <= set(first)
    await asyncio.to_thread(console.send, "/queue/live", "1", "2")
    second = await frame_with(live, "overview", lambda cells: cells.get("pending") == "2")
    assert "topics" not in second or second["topics"] != first["topics"]
    quiet = await frame_with(live, "overview")
    assert "pending" not in quiet
    await live.disconnect()


async def test_a_list_sends_the_rows_the_page_shows(console, session_of, wait_for_mirror):
    await asyncio.to_thread(console.send, "/queue/shown", "1")
    await asyncio.to_thread(console.send, "/queue/hidden", "1")
    await asyncio.to_thread(wait_for_mirror, "shown", 1)
    live = socket(await asyncio.to_thread(session_of, "viewer"))
    await live.connect()
    await live.send_json_to({"type": "subscribe", "topic": "list:queues?sort=name", "rows": ["shown", "gone"]})
    cells = await frame_with(live, "list:queues?sort=name")
    assert cells["rows"]["shown"]["QueueSize"] == "1"
    assert cells["rows"]["gone"] == {"gone": True}
    assert "hidden" not in cells["rows"]
    await live.disconnect()


async def test_a_queue_shows_its_depth_live(console, session_of):
    live = socket(await asyncio.to_thread(session_of, "support"))
    await live.connect()
    await live.send_json_to({"type": "subscribe", "topic": "queue:deep"})
    await asyncio.to_thread(console.send, "/queue/deep", *"abc")
    cells = await frame_with(live, "queue:deep", lambda cells: cells.get("QueueSize") == "3")
    assert cells["mark"][1] == 3
    await live.disconnect()


async def test_the_frame_tells_how_old_its_numbers_are(console, session_of):
    live = socket(await asyncio.to_thread(session_of, "viewer"))
    await live.connect()
    async with asyncio.timeout(PATIENCE):
        while (frame := await live.receive_json_from())["age"] is None:
            pass
    assert frame["age"] < 3
    assert frame["trouble"] == ""
    await live.disconnect()


async def test_a_broker_that_is_away_is_told_on_a_socket_that_works(console_without_store, session_of):
    live = socket(await asyncio.to_thread(session_of, "viewer"))
    accepted = await live.connect()
    assert accepted
    await live.send_json_to({"type": "subscribe", "topic": "overview"})
    cells = await frame_with(live, "overview")
    assert cells["state"] == "lost"
    await live.disconnect()


@pytest.mark.parametrize(
    "message",
    [
        {"type": "subscribe", "topic": "secrets"},
        {"type": "subscribe", "topic": "overview", "rows": "all"},
        {"type": "subscribe", "topic": "list:queues", "rows": ["x"] * 201},
        {"type": "dance"},
        ["subscribe"],
    ],
)
async def test_what_makes_no_sense_is_refused_and_the_socket_stays(message, console, session_of):
    live = socket(await asyncio.to_thread(session_of, "viewer"))
    await live.connect()
    await live.send_json_to(message)
    async with asyncio.timeout(PATIENCE):
        while (answer := await live.receive_json_from())["type"] != "refused":
            pass
    assert answer["reason"]
    await live.send_json_to({"type": "subscribe", "topic": "overview"})
    assert await frame_with(live, "overview")
    await live.disconnect()


async def test_a_user_without_a_role_subscribes_to_nothing(console, session_of):
    live = socket(await asyncio.to_thread(session_of, ""))
    await live.connect()
    await live.send_json_to({"type": "subscribe", "topic": "overview"})
    async with asyncio.timeout(PATIENCE):
        while (answer := await live.receive_json_from())["type"] != "refused":
            pass
    assert "view destinations and metrics" in answer["reason"]
    await live.disconnect()


async def test_one_tab_cannot_ask_for_everything(console, session_of):
    live = socket(await asyncio.to_thread(session_of, "viewer"))
    await live.connect()
    for number in range(MAX_TOPICS + 1):
        await live.send_json_to({"type": "subscribe", "topic": f"queue:q{number}"})
    async with asyncio.timeout(PATIENCE):
        while (answer := await live.receive_json_from())["type"] != "refused":
            pass
    assert answer["topic"] == f"queue:q{MAX_TOPICS}"
    await live.disconnect()


async def test_a_closed_account_loses_its_socket(console, session_of, monkeypatch):
    monkeypatch.setattr("console.broker.live.socket.RECHECK", 0)
    live = socket(await asyncio.to_thread(session_of, "viewer"))
    await live.connect()
    await live.receive_json_from()
    await asyncio.to_thread(_close_account)
    assert await end_of(live) == LOGGED_OUT


def _close_account() -> None:
    from django.contrib.auth.models import User

    User.objects.update(is_active=False)


async def test_a_run_that_moves_on_is_shown_at_once(console, session_of):
    run = await AnalysisRun.objects.acreate(kind="traffic", title="Traffic", asked_by="ada")
    live = socket(await asyncio.to_thread(session_of, "viewer"))
    await live.connect()
    topic = f"run:{run.id}"
    await live.send_json_to({"type": "subscribe", "topic": topic})
    assert (await frame_with(live, topic))["state"] == "queued"
    await asyncio.to_thread(run_service.on_state_changed, str(run.id), "running", {"stage": "Reading", "progress": 0.5})
    cells = await frame_with(live, topic, lambda cells: "state" in cells)
    assert (cells["state"], cells["stage"], cells["progress"]) == ("running", "Reading", 0.5)
    await live.disconnect()


def test_the_mirror_misses_nothing_of_what_happens_before_it_listens(console, monkeypatch):
    between = Destination.queue("between")

    async def listening_late(store):
        await asyncio.to_thread(console.send, "/queue/between", "1")
        while str(between) not in str(await store.stats.changes_since(0)):
            await asyncio.sleep(0.05)
        yield "subscribed"
        await asyncio.Event().wait()  # and nothing happens any more

    monkeypatch.setattr(RedisStore, "signals", listening_late)
    wait_until(lambda: between in mirror().picture.stats, "the queue in the picture")


def test_the_mirror_notices_a_deleted_queue(console, wait_for_mirror, admin):
    console.send("/queue/short.lived", "1")
    wait_for_mirror("short.lived", 1)
    admin.post("/queues/short.lived/delete", {"name": "short.lived"})
    mirror().wait_until(lambda picture: Destination.queue("short.lived") not in picture.stats)
    assert Destination.queue("short.lived") not in mirror().picture.stats


async def test_a_tab_that_takes_nothing_costs_one_frame_and_gets_the_latest(
    console, session_of, wait_for_mirror, monkeypatch
):
    monkeypatch.setattr("console.broker.live.socket.INTERVAL", 0.05)
    live = socket(await asyncio.to_thread(session_of, "viewer"))
    await live.connect()
    await live.send_json_to({"type": "subscribe", "topic": "queue:slow.tab"})
    sending, sent = asyncio.Event(), []
    from console.broker.live import socket as sockets

    original = sockets.LiveConsumer.send_json

    async def stuck(self, content, close=False):
        sent.append(content)
        await sending.wait()  # as a socket whose buffer is full
        await original(self, content, close)

    monkeypatch.setattr(sockets.LiveConsumer, "send_json", stuck)
    for number in range(5):
        await asyncio.to_thread(console.send, "/queue/slow.tab", str(number))
    await asyncio.to_thread(wait_for_mirror, "slow.tab", 5)
    assert len(sent) <= 1  # nothing was made while the one before was on its way
    sending.set()
    cells = await frame_with(live, "queue:slow.tab", lambda cells: cells.get("QueueSize") == "5")
    assert cells["QueueSize"] == "5"
    await live.disconnect()


async def test_a_socket_on_another_web_process_shows_the_same(console, session_of, monkeypatch):
    from console.broker.gateway import Gateway, gateway
    from console.broker.mirror import BrokerMirror

    door = await asyncio.to_thread(lambda: Gateway(gateway().admin.redis_url, gateway().admin.broker))
    other = await asyncio.to_thread(BrokerMirror, door)
    session = await asyncio.to_thread(session_of, "viewer")
    here = socket(session)
    await here.connect()
    await here.receive_json_from()
    monkeypatch.setattr("console.broker.live.socket.mirror", lambda: other)
    there = socket(session)
    await there.connect()
    for each in (here, there):
        await each.send_json_to({"type": "subscribe", "topic": "queue:two.processes"})
    await asyncio.to_thread(console.send, "/queue/two.processes", "1", "2")
    for each in (here, there):
        assert await frame_with(each, "queue:two.processes", lambda cells: cells.get("QueueSize") == "2")
        await each.disconnect()
    other.close()
    await asyncio.to_thread(door.close)


async def test_a_role_that_is_taken_away_ends_its_topics_at_once(console, session_of):
    live = socket(await asyncio.to_thread(session_of, "viewer"))
    await live.connect()
    await live.send_json_to({"type": "subscribe", "topic": "overview"})
    assert await frame_with(live, "overview")
    await asyncio.to_thread(lambda: [each.delete() for each in Assignment.objects.all()])
    async with asyncio.timeout(PATIENCE):
        while (answer := await live.receive_json_from())["type"] != "refused":
            pass
    assert answer["topic"] == "overview"
    await live.disconnect()


async def test_a_scope_hides_rows_and_refuses_a_queue_beyond_it(console, session_of, wait_for_mirror):
    await asyncio.to_thread(console.send, "/queue/scoped.in", "1")
    await asyncio.to_thread(console.send, "/queue/scoped-out", "1")
    await asyncio.to_thread(wait_for_mirror, "scoped-out", 1)
    live = socket(await asyncio.to_thread(session_of, "viewer", "scoped.>"))
    await live.connect()
    await live.send_json_to({"type": "subscribe", "topic": "list:queues", "rows": ["scoped.in", "scoped-out"]})
    rows = (await frame_with(live, "list:queues"))["rows"]
    assert (rows["scoped.in"]["QueueSize"], rows["scoped-out"]) == ("1", {"gone": True})
    await live.send_json_to({"type": "subscribe", "topic": "queue:scoped-out"})
    async with asyncio.timeout(PATIENCE):
        while (answer := await live.receive_json_from())["type"] != "refused":
            pass
    assert "queue://scoped-out" in answer["reason"]
    await live.disconnect()


async def test_who_sees_the_console_as_somebody_else_gets_their_frames_until_the_look_ends(
    console, session_of, wait_for_mirror, monkeypatch
):
    clocks = []
    zone_name_of = "console.broker.live.socket.zone_name_of"
    monkeypatch.setattr(zone_name_of, lambda user: clocks.append(user.get_username()) or "UTC")
    await asyncio.to_thread(console.send, "/queue/scoped-out", "1")
    await asyncio.to_thread(console.send, "/queue/scoped.in", "1")

    def look() -> str:
        key = session_of("admin")
        session = SessionStore(key)
        impersonation.begin(session, effective_rights.find("role", "viewer", ["scoped.>"]))
        session.save()
        return key

    key = await asyncio.to_thread(look)
    shown_otherwise = socket(key)  # a page from before
    await shown_otherwise.connect()
    assert (await shown_otherwise.receive_output(PATIENCE))["code"] == SEEN_OTHERWISE
    live = socket(key, shown_to="role viewer for scoped.>")
    await live.connect()
    await live.send_json_to({"type": "subscribe", "topic": "list:queues", "rows": ["scoped.in", "scoped-out"]})
    rows = (await frame_with(live, "list:queues"))["rows"]
    assert rows["scoped-out"] == {"gone": True}
    await asyncio.to_thread(make_user, "analyst")  # rights change: everybody's are looked up anew
    await live.send_json_to({"type": "subscribe", "topic": "queue:scoped-out"})
    async with asyncio.timeout(PATIENCE):
        while (await live.receive_json_from())["type"] != "refused":
            pass
    await asyncio.to_thread(lambda: Assignment.objects.filter(role="admin").delete())
    assert await end_of(live) == SEEN_OTHERWISE
    assert set(clocks) == {"admin"}


async def test_a_page_that_another_user_loaded_gets_no_frame(console, session_of):
    key = await asyncio.to_thread(session_of, "viewer")
    live = socket(key, user="somebody-else")
    await live.connect()
    assert (await live.receive_output(PATIENCE))["code"] == SEEN_OTHERWISE


async def test_tabs_that_were_open_when_a_look_begins_or_ends_get_no_more_of_what_they_may_not_see(console, session_of):
    key = await asyncio.to_thread(session_of, "admin")

    def post(page: str, **typed: str) -> None:
        client = Client()
        client.cookies[settings.SESSION_COOKIE_NAME] = key
        assert client.post(reverse(page), typed).status_code == 302

    async def watching(shown_to: str = "") -> Socket:
        tab = socket(key, shown_to=shown_to)
        await tab.connect()
        await tab.send_json_to({"type": "subscribe", "topic": "overview"})
        await frame_with(tab, "overview")
        return tab

    before = await watching()
    await asyncio.to_thread(post, "impersonate", kind="role", name="viewer")
    assert await end_of(before) == SEEN_OTHERWISE
    during = await watching((await asyncio.to_thread(effective_rights.find, "role", "viewer")).description)
    await asyncio.to_thread(post, "impersonate-end")
    assert await end_of(during) == SEEN_OTHERWISE
