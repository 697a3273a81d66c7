"""Test that nodes that cannot start say why, and that no foreign port is taken."""

import socket
import time
from contextlib import closing

import pytest

from tests.chaos import timeouts
from tests.chaos.environment import START_SECONDS, Environment
from tests.ports import KeptPort


def test_a_world_whose_node_finds_its_port_taken_says_so_at_once(tmp_path):
    why = r"b1 ended as it started:\n.*cannot listen on .*already in use"
    with closing(Environment(tmp_path)) as environment, socket.create_server(("127.0.0.1", environment.ports["b1"])):
        began = time.monotonic()
        with pytest.raises(AssertionError, match=why):
            environment.start()
    assert time.monotonic() - began < START_SECONDS


def test_a_port_that_is_kept_is_nobody_elses_while_no_server_listens():
    kept = [KeptPort() for _ in range(200)]
    try:
        assert len({each.number for each in kept}) == len(kept)
        with socket.create_server(("127.0.0.1", kept[0].number)):
            pass
    finally:
        for each in kept:
            each.close()


@pytest.mark.parametrize(("load", "crowding"), [(0.2, 1.0), (2.0, 1.0), (12.0, 6.0)])
def test_who_waits_for_processes_waits_longer_on_a_busy_machine(monkeypatch, load, crowding):
    monkeypatch.setattr("os.getloadavg", lambda: (load, 0.0, 0.0))
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    assert timeouts.scaled_timeout(60.0) == 60.0 * crowding
    assert f"{crowding:.1f} processes" in timeouts.describe_load()
