"""Test that a node checks its ports before anything else happens."""

import asyncio
import socket

import pytest
import uvloop

from brokerapp.errors import ConfigurationRefused
from brokerapp.runtime.listeners import ListenAddress, check_free


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
def test_an_address_that_somebody_else_listens_at_is_refused(run):
    with socket.create_server(("127.0.0.1", 0)) as other:
        listen = ListenAddress("127.0.0.1", other.getsockname()[1], "main")
        with pytest.raises(ConfigurationRefused, match="'main' cannot listen"):
            run(check_free([listen]))
    run(check_free([listen]))


def test_nobody_is_let_in_where_an_address_is_only_looked_at(monkeypatch):
    served, close = [], asyncio.Server.close
    monkeypatch.setattr(asyncio.Server, "close", lambda server: (served.append(server.is_serving()), close(server)))
    asyncio.run(check_free([ListenAddress("127.0.0.1", 0)]))
    assert served == [False]
