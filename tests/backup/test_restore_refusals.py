"""Test what is not restored: damaged files, wrong passphrases, folders and stores that hold something."""

from __future__ import annotations

import io
import json
import tarfile

import pytest

from brokerapp.backup import broker_restore, manifest
from tests.backup.restored_broker import restore
from tests.faults.servers import Server

pytestmark = pytest.mark.slow


@pytest.fixture
def refused(tmp_path, capsys):
    """Return what a restore says that must fail and leave no data folder."""

    def refused(file, *options) -> str:
        data = tmp_path / "refused"
        assert restore(file, "--data", data, *options) == 1
        assert not data.exists(), "something is left"
        said = capsys.readouterr().err
        assert said.startswith("error: ")
        assert said.count("\n") == 1, "one sentence"
        return said

    return refused


def test_a_role_without_a_backup_takes_no_options_of_a_backup(tmp_path, capsys):
    for options, said in (
        ((), "name the backup FILE, or --replace or --as-copy for what was restored before"),
        (("--replace", "--shard", "1=redis://x"), "--shard needs the backup FILE"),
    ):
        with pytest.raises(SystemExit):
            restore("--data", tmp_path, *options)
        assert said in capsys.readouterr().err


def test_a_folder_without_a_broker_has_no_role_to_choose(tmp_path, capsys):
    assert restore("--data", tmp_path, "--as-copy") == 1
    assert "no broker was started with --data" in capsys.readouterr().err


def changed(file, copy, change):
    data = bytearray(file.read_bytes())
    change(data)
    copy.write_bytes(data)
    return copy


def members(file):
    with tarfile.open(file) as archive:
        return {each.name: each for each in archive.getmembers()}


@pytest.mark.parametrize("part", ["store-0.rdb", "configuration.json", "secrets.json", "broker.xml"])
def test_a_changed_byte_in_any_part_is_noticed(encrypted, passphrase_file, tmp_path, refused, part):
    member = members(encrypted)[part]

    def flip(data):
        data[member.offset_data + member.size // 2] ^= 1

    said = refused(changed(encrypted, tmp_path / "changed", flip), "--passphrase-file", passphrase_file)
    assert f"is damaged: the checksum of its part {part} differs" in said


def test_a_changed_byte_in_the_manifest_is_noticed(plain, tmp_path, refused):
    member = members(plain)[manifest.NAME]

    def change(data):
        at = data.index(b'"host"', member.offset_data)
        data[at + 10] ^= 1

    assert "the checksum of its manifest differs" in refused(changed(plain, tmp_path / "changed", change))


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_a_file_that_is_cut_off_is_noticed(plain, tmp_path, refused, share):
    size = int(plain.stat().st_size * share)
    said = refused(changed(plain, tmp_path / "cut", lambda data: data.__delitem__(slice(size, None))))
    assert "is damaged, or not a backup of Sluice" in said or "is incomplete" in said


def test_a_tar_archive_of_something_else_is_incomplete(tmp_path, refused):
    with tarfile.open(tmp_path / "other.tar", "w") as archive:
        archive.addfile(tarfile.TarInfo("readme"), io.BytesIO())
    assert "it has no manifest" in refused(tmp_path / "other.tar")


def test_a_file_that_does_not_exist_is_named(tmp_path, refused):
    assert "nowhere cannot be read: No such file or directory" in refused(tmp_path / "nowhere")


def test_a_wrong_passphrase_is_refused(encrypted, tmp_path, refused):
    (tmp_path / "wrong").write_text("horse correct battery\n")
    assert "the passphrase is wrong" in refused(encrypted, "--passphrase-file", tmp_path / "wrong")


def test_an_encrypted_backup_asks_for_a_passphrase(encrypted, refused, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO())
    assert "the backup is encrypted: use --passphrase-file FILE" in refused(encrypted)


def test_a_backup_of_a_newer_format_names_the_version_that_made_it(plain, tmp_path, refused):
    content = json.loads(plain.read_bytes()[members(plain)[manifest.NAME].offset_data :].split(b"\0")[0])["manifest"]
    content |= {"format": manifest.FORMAT + 1, "sluice": "9.0.0"}
    newer = json.dumps({"manifest": content}).encode()
    with tarfile.open(tmp_path / "newer", "w") as archive:
        info = tarfile.TarInfo(manifest.NAME)
        info.size = len(newer)
        archive.addfile(info, io.BytesIO(newer))
    said = refused(tmp_path / "newer")
    assert f"the backup has format {manifest.FORMAT + 1}" in said
    assert "restore it with Sluice 9.0.0" in said


def test_a_data_folder_that_holds_something_stays_as_it_is(plain, tmp_path, capsys):
    data = tmp_path / "data"
    data.mkdir()
    (data / "broker.name").write_text("mine")
    assert restore(plain, "--data", data) == 1
    assert "is not empty, it holds broker.name: restore into an empty folder" in capsys.readouterr().err
    assert [each.name for each in data.iterdir()] == ["broker.name"]


def test_a_store_that_holds_the_broker_stays_as_it_is(plain, tmp_path, refused):
    server = Server(tmp_path / "server")
    try:
        server.ask("SET", "{orders}:state", "of another one")
        said = refused(plain, "--redis", f"redis://127.0.0.1:{server.port}")
        assert "holds broker orders already (key {orders}:state)" in said
        assert "--name" in said
        assert server.ask("DBSIZE") == 1
    finally:
        server.end()


def test_keys_of_a_broker_that_is_started_on_the_store_during_the_restore_stay(plain, tmp_path, refused, monkeypatch):
    server = Server(tmp_path / "server")
    prepare = broker_restore.StagedStore.prepare

    def start_broker(*arguments):  # after the store was checked
        server.ask("SET", "{orders}:state", "of the new one")
        return prepare(*arguments)

    monkeypatch.setattr(broker_restore.StagedStore, "prepare", start_broker)
    try:
        said = refused(plain, "--redis", f"redis://127.0.0.1:{server.port}")
        assert "holds broker orders already (key {orders}:state)" in said
        assert server.ask("KEYS", "*") == [b"{orders}:state"]
    finally:
        server.end()


def test_a_store_that_would_delete_messages_is_refused(plain, tmp_path, refused):
    server = Server(tmp_path / "server")
    try:
        server.ask("CONFIG", "SET", "maxmemory", "1gb", "maxmemory-policy", "allkeys-lru")
        assert "set its maxmemory-policy to noeviction" in refused(plain, "--redis", f"redis://127.0.0.1:{server.port}")
        assert server.ask("DBSIZE") == 0
    finally:
        server.end()


def test_a_store_that_does_not_answer_is_named(plain, refused):
    assert "the store at redis://127.0.0.1:9 does not answer: connection refused" in refused(
        plain, "--redis", "redis://127.0.0.1:9"
    )


def test_a_shard_that_the_backup_does_not_have_is_refused(plain, refused):
    assert "the backup has no shard 1: it has 0" in refused(plain, "--shard", "1=redis://127.0.0.1:9")
