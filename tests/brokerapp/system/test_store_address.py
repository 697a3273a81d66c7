"""Test which URLs of a store are accepted, and the errors for others."""

import os
import subprocess
import sys

import pytest

from brokerapp.errors import ConfigurationRefused
from brokerapp.store.redis import RedisStore
from brokerapp.system.environment import PROJECT, Environment
from brokerapp.system.store_address import check_store_url

REFUSED = {
    "sentinel://one:26379,two:26379/main": "Redis Sentinel is not supported yet",
    "redis+sentinel://one/main": "Redis Sentinel is not supported yet",
    "redis-cluster://one:6379": "Redis Cluster is not supported yet",
    "redis://one:6379,two:6379/0": "several addresses are not supported yet",
    "redis://one,two/0": "several addresses are not supported yet",
    "http://one:6379": "expected redis://HOST:PORT/DATABASE",
    "one:6379": "expected redis://HOST:PORT/DATABASE",
    "redis://[::1": "expected redis://HOST:PORT/DATABASE",
    "unix://": "expected redis://HOST:PORT/DATABASE",
    "redis://one:many": "the port must be a number",
    "redis://one:65536": "the port must be a number",
    "redis://one:6379/first": "the database must be a whole number",
    "redis://one:6379/0?sentinel=yes": "option that is not supported",
}
SERVED = [
    "redis://one", "redis://one:6379/", "rediss://user:a,b@one:6379/3", "redis://:secret@[::1]:6379/0",
    "unix:///a,b/valkey.sock", "unix://user:p@/valkey.sock?db=1", "redis://one:6379?db=2",
]  # fmt: skip


@pytest.mark.parametrize("url", SERVED)
def test_the_url_of_one_server_is_served(url):
    assert check_store_url(url) == url
    RedisStore(url, "any")


@pytest.mark.parametrize(("url", "reason"), REFUSED.items())
def test_any_other_url_is_refused_with_its_reason(url, reason):
    with pytest.raises(ConfigurationRefused, match=reason):
        RedisStore(url, "any")


def test_the_sentence_does_not_show_a_password():
    with pytest.raises(ConfigurationRefused) as refused:
        check_store_url("sentinel://user:secret@one/main")
    assert str(refused.value) == (
        "store URL sentinel://***@one/main: Redis Sentinel is not supported yet; "
        "use the address of one primary server, redis://HOST:PORT/DATABASE"
    )


@pytest.mark.parametrize("url", ["redis://one:many?password=secret", "redis://a:secret@one,two?password=secret"])
def test_the_sentence_does_not_show_a_password_that_is_an_option(url):
    with pytest.raises(ConfigurationRefused) as refused:
        check_store_url(url)
    assert "secret" not in str(refused.value)
    assert "one" in str(refused.value)


def test_the_environment_refuses_it_too():
    with pytest.raises(ConfigurationRefused, match="several addresses"):
        Environment.read({"REDIS_URL": "redis://one,two/0"})


@pytest.mark.parametrize("arguments", [("brokerctl", "stats"), ("check",)])
def test_a_command_ends_with_one_sentence(arguments):
    variables = {**os.environ, "REDIS_URL": "sentinel://one,two/main"}
    ended = subprocess.run(
        [sys.executable, "manage.py", *arguments], cwd=PROJECT, env=variables, capture_output=True, text=True
    )
    assert ended.returncode == 1, ended.stderr
    *_, line = ended.stderr.strip().splitlines()
    assert "Traceback" not in ended.stderr
    assert "Redis Sentinel is not supported yet" in line
