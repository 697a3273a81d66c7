"""Test the web process as host of a node: logins over STOMP, and the life of the node."""

import asyncio
import socket
from dataclasses import replace

import pytest
from channels.layers import get_channel_layer
from redis import StrictRedis

from brokerapp.errors import ConfigurationRefused
from brokerapp.store.server.embedded import EmbeddedStore
from console.broker.live.run_notices import notices
from console.ops import broker_host
from console.ops.broker_host import Authenticator, lifespan
from tests.certificates import PASSWORD, Authority
from tests.console.conftest import make_user, point_at
from tests.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


async def test_a_user_of_the_console_is_a_principal_with_its_roles(db):
    await asyncio.to_thread(make_user, "support")
    principal = await Authenticator()("support", "password")
    assert (principal.name, principal.groups) == ("support", frozenset({"support"}))


@pytest.mark.parametrize(("login", "passcode"), [("support", "guess"), ("stranger", "password"), ("", "")])
async def test_anybody_else_is_nobody(login, passcode, db):
    await asyncio.to_thread(make_user, "support")
    assert await Authenticator()(login, passcode) is None


async def test_a_storm_of_the_same_client_costs_one_look_and_a_closed_account_ends_within_a_minute(db, monkeypatch):
    user = await asyncio.to_thread(make_user, "support")
    clock = Clock()
    authenticate = Authenticator(clock)
    looks = []
    monkeypatch.setattr(
        authenticate, "_check", lambda *who: looks.append(who) or Authenticator._check(authenticate, *who)
    )
    for _ in range(50):
        assert await authenticate("support", "password")
    assert len(looks) == 1
    user.is_active = False
    await user.asave()
    clock.now += Authenticator.YES
    assert await authenticate("support", "password") is None


async def test_passwords_are_guessed_slowly_and_only_whoever_guesses_notices(db, monkeypatch):
    clock = Clock()
    authenticate = Authenticator(clock)
    monkeypatch.setattr(authenticate, "_check", lambda login, passcode: passcode == "right" or None)
    assert await authenticate("ada", "right", "10.0.0.1")
    for number in range(Authenticator.MAX_GUESSES):
        assert await authenticate("ada", f"guess {number}", "10.0.0.9") is None
    assert await authenticate("bob", "right", "10.0.0.9")
    assert await authenticate("ada", "right", "10.0.0.9")  # remembered
    clock.now = Authenticator.YES
    for number in range(Authenticator.MAX_GUESSES):
        await authenticate("ada", f"further guess {number}", "10.0.0.9")
    assert await authenticate("ada", "right", "10.0.0.9") is None
    assert await authenticate("ada", "right", "10.0.0.1")
    clock.now += Authenticator.SLOWLY
    assert await authenticate("ada", "right", "10.0.0.9")


async def test_name_and_password_are_not_run_together_when_remembered(db):
    await asyncio.to_thread(make_user, "support")
    authenticate = Authenticator()
    assert await authenticate("support", "password")
    assert await authenticate("supportp", "assword") is None


async def run_lifespan(events: list[str], before_the_end=lambda: None, state: dict | None = None) -> list[str]:
    """The answers to these events of an ASGI server, whose state the application may change."""
    sent = []

    async def receive() -> dict:
        if len(events) == 1:
            await asyncio.to_thread(before_the_end)
        return {"type": events.pop(0)}

    async def send(message: dict) -> None:
        sent.append(message["type"])

    await lifespan({"type": "lifespan", "state": {} if state is None else state}, receive, send)
    return sent


async def test_without_being_asked_to_no_node_is_started(monkeypatch):
    monkeypatch.delenv("SLUICE_HOST_NODE", raising=False)
    answers = await run_lifespan(["lifespan.startup", "lifespan.shutdown"])
    assert answers == ["lifespan.startup.complete", "lifespan.shutdown.complete"]


async def test_a_process_that_tabs_were_open_on_ends_quietly(monkeypatch, store_url, settings, caplog):
    monkeypatch.delenv("SLUICE_HOST_NODE", raising=False)
    point_at(settings, store_url, "tabs", settings.SLUICE.data)

    def open_tab():
        loop, layers = notices()._door.loop, get_channel_layer()._layers
        wait_until(lambda: loop in layers and layers[loop].groups, "it listens")

    answers = await run_lifespan(["lifespan.startup", "lifespan.shutdown"], open_tab)
    assert answers == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
    assert [each.message for each in caplog.records if each.levelname == "ERROR"] == []


async def test_a_node_lives_as_long_as_the_web_process(monkeypatch, store_url, settings):
    monkeypatch.setenv("SLUICE_HOST_NODE", "1")
    settings.SLUICE = replace(settings.SLUICE, redis_url=store_url, broker_name="hosted", client_ports={"stomp": 0})
    started = []
    start = broker_host._start_node

    async def start_and_remember():
        started.append(await start())
        return started[0]

    monkeypatch.setattr(broker_host, "_start_node", start_and_remember)
    answers = await run_lifespan(["lifespan.startup", "lifespan.shutdown"])
    assert answers == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
    host, port = started[0].addresses[0].removeprefix("stomp://").split(":")
    with pytest.raises(OSError, match="Connect call failed"):
        await asyncio.open_connection(host, int(port))


async def test_a_user_without_a_role_for_programs_is_refused_at_the_login_with_the_role_that_is_missing(
    db, settings, store_url
):
    for role in ("support", "client", "admin"):
        await asyncio.to_thread(make_user, role)
    settings.SLUICE = replace(
        settings.SLUICE, redis_url=store_url, broker_name="hosted-roles", client_ports={"stomp": 0}
    )
    node = await broker_host._start_node()
    try:
        host, port = node.addresses[0].removeprefix("stomp://").split(":")
        answers = {}
        for login, passcode in (
            ("support", "password"),
            ("support", "wrong"),
            ("client", "password"),
            ("admin", "password"),
        ):
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(f"CONNECT\naccept-version:1.2\nhost:/\nlogin:{login}\npasscode:{passcode}\n\n\0".encode())
            answers[login, passcode] = (await reader.readuntil(b"\0")).decode()
            writer.close()
    finally:
        await node.stop()
    assert "user 'support' needs the role client to connect" in answers["support", "password"]
    assert "user name 'support' or its password is wrong" in answers["support", "wrong"], "nobody else learns of roles"
    assert answers["client", "password"].startswith("CONNECTED")
    assert answers["admin", "password"].startswith("CONNECTED")


async def test_a_node_that_cannot_start_stops_the_web_process(monkeypatch, settings, tmp_path):
    monkeypatch.setenv("SLUICE_HOST_NODE", "1")
    settings.SLUICE = replace(settings.SLUICE, redis_url=f"unix://{tmp_path}/nothing.sock", client_ports={"stomp": 0})
    state = {}
    assert await run_lifespan(["lifespan.startup"], state=state) == ["lifespan.startup.failed"]
    assert state == {}, "a store that is away comes back: the process is to be started again"


async def test_a_port_that_another_program_uses_is_no_configuration_error(monkeypatch, settings, store_url):
    monkeypatch.setenv("SLUICE_HOST_NODE", "1")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        ports = {"stomp": taken.getsockname()[1]}
        settings.SLUICE = replace(settings.SLUICE, redis_url=store_url, client_ports=ports)
        state = {}
        assert await run_lifespan(["lifespan.startup"], state=state) == ["lifespan.startup.failed"]
    assert state == {}, "it may be free soon: the process is to be started again"


async def test_a_store_that_evicts_keys_ends_the_web_process_with_the_exit_code_of_its_configuration(
    monkeypatch, settings, tmp_path
):
    monkeypatch.setenv("SLUICE_HOST_NODE", "1")
    state = {}
    with EmbeddedStore(tmp_path / "store") as store, StrictRedis.from_url(store.url) as client:
        client.config_set("maxmemory-policy", "allkeys-lru")
        client.config_set("maxmemory", "100mb")
        settings.SLUICE = replace(settings.SLUICE, redis_url=store.url, client_ports={"stomp": 0})
        assert await run_lifespan(["lifespan.startup"], state=state) == ["lifespan.startup.failed"]
    assert state["configuration"].startswith("the store's server evicts keys when its memory is full: set its maxmem")


async def test_other_ways_to_the_broker_are_served_where_they_have_a_port(monkeypatch, store_url, settings, tmp_path):
    identity = Authority(tmp_path).issue("broker")
    settings.SLUICE = replace(
        settings.SLUICE, redis_url=store_url, broker_name="hosted-ways",
        client_ports={"stomp": 0, "tcp": 0, "stomp+ssl": 0, "ws": 0, "wss": 0},
        tls_certificate=str(identity.p12), tls_password=PASSWORD,
    )  # fmt: skip
    node = await broker_host._start_node()
    try:
        ways = [address.partition(":")[0] for address in node.addresses]
        assert ways == ["stomp", "tcp", "stomp+ssl", "ws", "wss"]
    finally:
        await node.stop()


async def test_a_certificate_that_cannot_be_used_stops_the_start(settings, store_url, tmp_path):
    settings.SLUICE = replace(
        settings.SLUICE,
        redis_url=store_url,
        client_ports={"wss": 0},
        tls_certificate=str(tmp_path / "no"),
    )
    with pytest.raises(ConfigurationRefused, match=r"'wss' .* is not served: .*/no: No such file"):
        await broker_host._start_node()
