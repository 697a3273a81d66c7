"""Test the recovery of an append-only file with an incomplete end, with real servers."""

import logging
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import redis

from brokerapp.errors import StoreUnavailable
from brokerapp.store.server.append_only_file import MalformedFile, check_incomplete
from brokerapp.store.server.embedded import EmbeddedStore, answer_to_ping
from tests.waiting import wait_until

PROJECT = Path(__file__).resolve().parents[3]
TRANSACTION = (
    b"*1\r\n$5\r\nMULTI\r\n*3\r\n$3\r\nSET\r\n$1\r\na\r\n$4\r\n1\0\r\n\r\n*3\r\n$3\r\nSET\r\n$1\r\nb\r\n$2\r\n22\r\n"
)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The append-only file of a store with 20 keys, as a killed server leaves it."""
    folder = tmp_path_factory.mktemp("written")
    with EmbeddedStore(folder) as store:
        server = redis.Redis.from_url(store.url)
        for number in range(20):
            pipe = server.pipeline(transaction=True)
            pipe.set(f"key {number}", b"\0" * number + b"*1\r\n$4\r\nPING\r\n")
            pipe.incr("written")
            pipe.execute()
        os.kill(store.pid, signal.SIGKILL)
        wait_until(lambda: not store.is_alive, "the server is dead")
    [file] = folder.glob("appendonlydir/*.incr.aof")
    return file.read_bytes()


@pytest.fixture
def folder(tmp_path, written):
    """A store with this file."""
    with EmbeddedStore(tmp_path) as store:
        os.kill(store.pid, signal.SIGKILL)
        wait_until(lambda: not store.is_alive, "the server is dead")
    file_in(tmp_path).write_bytes(written)
    return tmp_path


def file_in(folder):
    [file] = folder.glob("appendonlydir/*.incr.aof")
    return file


def keys(folder):
    with EmbeddedStore(folder) as store:
        server = redis.Redis.from_url(store.url)
        found = server.mget(f"key {number}" for number in range(int(server.get("written"))))
        assert all(each.endswith(b"PING\r\n") for each in found)
        return len(found)


@pytest.mark.parametrize("nuls", [1, 4096, 200_000])
def test_nuls_at_the_end_are_cut_named_and_kept(folder, written, nuls, caplog):
    file = file_in(folder)
    file.write_bytes(written + bytes(nuls))
    assert keys(folder) == 20
    [kept] = folder.glob("*.cut-at-*")
    assert kept.read_bytes() == bytes(nuls)
    assert f"{file} ended in an incomplete write: {nuls} bytes from byte {len(written)} on were cut" in caplog.text
    assert str(kept) in caplog.text
    assert keys(folder) == 20  # and nothing is cut the second time
    assert list(folder.glob("*.cut-at-*")) == [kept]


@pytest.mark.parametrize("nuls", [0, 5000])
def test_an_incomplete_last_transaction_is_cut_and_kept(folder, written, nuls):
    begin = written.rindex(b"*1\r\n$5\r\nMULTI")
    for end in (begin + 3, begin + 13, begin + 25, len(written) - 60, len(written) - 40, len(written) - 1):
        file_in(folder).write_bytes(written[:end] + bytes(nuls))
        assert keys(folder) == 19
        [kept] = folder.glob("*.cut-at-*")
        assert kept.read_bytes() == written[begin:end] + bytes(nuls)
        kept.unlink()


def test_nothing_is_said_nor_kept_of_a_file_that_is_whole(folder, caplog):
    with caplog.at_level(logging.WARNING):
        assert keys(folder) == 20
    assert not caplog.records
    assert not list(folder.glob("*.cut-at-*"))


def damages(written):
    middle = written.index(b"key 7")
    return {
        "NULs": written[:middle] + bytes(40) + written[middle + 40 :],
        "garbage": written[:middle] + b"garbage\r\n" + written[middle + 9 :],
        "a length beyond the end": written.replace(b"$5\r\nkey 7", b"$500000\r\nkey 7"),
        "a length beyond the next": written.replace(b"$5\r\nkey 7", b"$50\r\nkey 7"),
        "garbage at the end": written + b"garbage\r\n",
    }


@pytest.mark.parametrize("kind", list(damages(b"key 7")))
def test_damage_elsewhere_is_refused_with_its_place_and_nothing_is_cut(folder, written, kind):
    file, damaged = file_in(folder), damages(written)[kind]
    file.write_bytes(damaged)
    with pytest.raises(StoreUnavailable) as refused:
        EmbeddedStore(folder).start()
    found = re.search(rf"{re.escape(str(file))} is damaged at byte (\d+) of {len(damaged)}: ", str(refused.value))
    if "end" not in kind:
        assert abs(int(found[1]) - written.index(b"key 7")) < 200
    assert "Nothing was cut" in str(refused.value)
    assert file.read_bytes() == damaged
    assert not list(folder.glob("*.cut-at-*"))


def test_the_module_that_becomes_the_server_mends_and_refuses_alike(folder, written):
    command = [sys.executable, "-m", "brokerapp.store.server.embedded", str(folder)]
    file_in(folder).write_bytes(damages(written)["garbage"])
    refused = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert refused.returncode == 1
    assert "is damaged at byte" in refused.stderr
    file_in(folder).write_bytes(written + bytes(100))
    process = subprocess.Popen(command, cwd=PROJECT, stderr=subprocess.PIPE, text=True)
    try:
        wait_until(lambda: answer_to_ping(folder / "valkey.sock") == "+PONG", "the server answers")
    finally:
        process.terminate()
        said = process.communicate()[1]
    assert f"100 bytes from byte {len(written)} on were cut" in said


def test_every_beginning_of_a_transaction_is_an_incomplete_write():
    for end in range(len(TRANSACTION) + 1):
        check_incomplete(TRANSACTION[:end], 0)
        check_incomplete(TRANSACTION[:end] + bytes(50), 0)


@pytest.mark.parametrize(
    "content", [TRANSACTION + b"*1\r\n$4\r\nEXEC\r\n", TRANSACTION[16:], TRANSACTION + b"x", b"*x\r\n"]
)
def test_what_the_server_refuses_is_no_incomplete_write_when_it_is_complete(content):
    with pytest.raises(MalformedFile):
        check_incomplete(content, 0)


def test_a_store_that_was_rewritten_and_written_to_no_more_starts_without_its_log(tmp_path):
    with EmbeddedStore(tmp_path) as store, redis.Redis.from_url(store.url) as server:
        server.set("written", 0)
        server.bgrewriteaof()
        wait_until(lambda: not server.info("persistence")["aof_rewrite_in_progress"], "the file is rewritten")
    assert file_in(tmp_path).stat().st_size == 0
    (tmp_path / "valkey.log").unlink()
    assert keys(tmp_path) == 0
