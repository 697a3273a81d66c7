"""Test which URLs of a store are accepted, and the errors for others."""

import os
import subprocess
import sys

import pytest

from brokerapp.errors import ConfigurationRefused
from brokerapp.store.redis import RedisStore
from brokerapp.system.checkout import PROJECT
from brokerapp.system.environment import Environment
from brokerapp.system.store_address import StoreAddress, check_replicas, check_store_url

REFUSED = {
    "sentinel://one:26379,two:26379": "the name by which Sentinel knows the primary is missing",
    "sentinel://one/main/first": "the database must be a whole number",
    "sentinel://one:many/main": "the port must be a number",
    "redis+sentinel://one/main": "sentinel://HOST:PORT,HOST:PORT/NAME/DATABASE",
    "redis-cluster://one:6379": "cluster://HOST:PORT,HOST:PORT",
    "cluster://one:6379/3": "a cluster has one database, 0",
    "redis://one:6379,two:0/0": "the port must be a number",
    "redis://one,/0": "expected redis://HOST:PORT/DATABASE",
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


def test_the_url_of_servers_names_each_of_them():
    address = StoreAddress.parse("rediss://user:secret@one,[::1]:7000/3?ssl_ca_certs=ca.pem")
    assert address.servers == address.hosts == (("one", 6379), ("::1", 7000))
    assert [address.url_of(each) for each in address.servers] == [
        "rediss://user:secret@one:6379/3?ssl_ca_certs=ca.pem",
        "rediss://user:secret@[::1]:7000/3?ssl_ca_certs=ca.pem",
    ]
    assert not address.has_one_server


def test_the_url_of_a_cluster_names_servers_of_it():
    address = StoreAddress.parse("clusters://user:secret@one,two:7000?ssl_ca_certs=ca.pem")
    assert address.cluster == address.hosts == (("one", 6379), ("two", 7000))
    assert address.url_of(("two", 7000)) == "rediss://user:secret@two:7000?ssl_ca_certs=ca.pem"
    assert address.is_encrypted
    assert not address.has_one_server


def test_the_url_of_sentinels_names_them_and_what_they_watch():
    address = StoreAddress.parse("sentinel://user:a,b@one:7000,two/main/2?sentinel_password=other&socket_timeout=3")
    assert address == StoreAddress(
        "redis://user:a,b@one:7000/2?socket_timeout=3",
        sentinels=(("one", 7000), ("two", 26379)), service="main", sentinel_password="other",
    )  # fmt: skip
    assert address.sentinel_url(("two", 26379)) == "redis://:other@two:26379"
    encrypted = StoreAddress.parse("sentinels://user:secret@one/main?ssl_ca_certs=ca.pem&db=3")
    assert encrypted.is_encrypted
    assert encrypted.sentinel_url(encrypted.sentinels[0]) == "rediss://one:26379?ssl_ca_certs=ca.pem"


@pytest.mark.parametrize("url", ["redis://one,two:7000/0", "sentinel://one,two/main"])
def test_a_store_with_replicas_is_served(url):
    assert not StoreAddress.parse(url).has_one_server
    RedisStore(url, "any")


@pytest.mark.parametrize(("replicas", "url"), [(-1, "redis://one"), (1, None)])
def test_a_number_of_replicas_that_none_can_be_is_refused(replicas, url):
    with pytest.raises(ConfigurationRefused, match=f"{replicas} replicas"):
        check_replicas(replicas, url)


@pytest.mark.parametrize(("url", "reason"), REFUSED.items())
def test_any_other_url_is_refused_with_its_reason(url, reason):
    with pytest.raises(ConfigurationRefused, match=reason):
        RedisStore(url, "any")


def test_the_sentence_does_not_show_a_password():
    with pytest.raises(ConfigurationRefused) as refused:
        check_store_url("cluster://user:secret@one/main")
    assert str(refused.value) == "store URL cluster://***@one/main: a cluster has one database, 0"


@pytest.mark.parametrize("url", ["redis://one:many?password=secret", "redis://a:secret@one,two:many?password=secret"])
def test_the_sentence_does_not_show_a_password_that_is_an_option(url):
    with pytest.raises(ConfigurationRefused) as refused:
        check_store_url(url)
    assert "secret" not in str(refused.value)
    assert "one" in str(refused.value)


def test_the_environment_refuses_it_too():
    with pytest.raises(ConfigurationRefused, match="NAME"):
        Environment.read({"REDIS_URL": "sentinel://one,two"})


@pytest.mark.parametrize("arguments", [("brokerctl", "stats"), ("check",)])
def test_a_command_ends_with_one_sentence(arguments):
    variables = {**os.environ, "REDIS_URL": "sentinel://one,two"}
    ended = subprocess.run(
        [sys.executable, "manage.py", *arguments], cwd=PROJECT, env=variables, capture_output=True, text=True
    )
    assert ended.returncode == 1, ended.stderr
    *_, line = ended.stderr.strip().splitlines()
    assert "Traceback" not in ended.stderr
    assert "the name by which Sentinel knows the primary is missing" in line
