"""Test clients of other projects as applications use them: stomp.py 8 and 9, and @stomp/stompjs under node."""

from __future__ import annotations

import sys

import pytest

from tests.clients.conftest import HERE, SCHEMES, STOMPJS

VERSIONS = ("1.0", "1.1", "1.2")
STOMP_PY = [sys.executable, str(HERE / "stomp_py_client.py")]
UNKNOWN_SELECTOR = "selector 'a =' is wrong at position 4"


def what_stomp_py_saw(version: str, name: str) -> dict:
    """What every stomp.py is to see."""
    seen = {
        "version": version,
        "heart-beat": "0,0" if version == "1.0" else "2000,2000",
        "text": "Grüße ☃",
        "header": "plain" if version == "1.0" else "a:b\nc\\d",
        "destination": f"/queue/{name}",
        "transaction": "committed",
        "large": 300_000,
        "after unsubscribing": 0,
    }
    return seen if version == "1.0" else {**seen, "dead letter": "unwanted"}


def check_stomp_py(run_script, major: str, scheme: str, version: str, environment=None) -> None:
    name = f"stomp-py-{major}.{scheme}.{version}".replace("+", "-")
    told = run_script(STOMP_PY, scheme, version, name, environment)
    assert str(told.pop("stomp.py")).strip("[").startswith(major)
    assert told.pop("error").startswith(UNKNOWN_SELECTOR)
    assert told == what_stomp_py_saw(version, name)


@pytest.mark.scenario("SC-15")
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("version", VERSIONS)
def test_stomp_py_9(run_script, scheme, version):
    check_stomp_py(run_script, "9", scheme, version)


@pytest.mark.scenario("SC-15")
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("version", VERSIONS)
def test_stomp_py_8(run_script, stomp_py_8, scheme, version):
    check_stomp_py(run_script, "8", scheme, version, stomp_py_8)


@pytest.mark.scenario("SC-15")
@pytest.mark.parametrize("scheme", ["ws", "wss"])
@pytest.mark.parametrize("version", VERSIONS)
def test_stompjs(run_script, node_js, scheme, version):
    name = f"stompjs.{scheme}.{version}"
    told = run_script([node_js, str(STOMPJS / "client.mjs")], scheme, version, name)
    assert told.pop("error").startswith(UNKNOWN_SELECTOR)
    dead = {} if version == "1.0" else {"deadLetter": "unwanted"}
    assert told == dead | {
        "version": version,
        "heartBeat": "500,0" if version == "1.0" else "500,500",
        "subprotocol": "v12.stomp",
        "text": "Grüße ☃",
        "header": "a:b\nc\\d" if version == "1.2" else "plain",
        "destination": f"/queue/{name}",
        "bytes": [0, 255, 0, 254],
        "transaction": "committed",
        "large": 300_000,
        "afterUnsubscribing": 0,
        "alive": True,
        "closed": True,
    }
