"""Test the file of a backup: encryption, what is left out, disks that are full."""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import resource
import stat
import subprocess
import sys
import tarfile
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from brokerapp.backup import manifest
from brokerapp.backup.configuration import SECRETS, configured, is_secret, restore_configuration
from brokerapp.backup.container import BackupReader, BackupWriter
from brokerapp.backup.encryption import CHUNK_BYTES, TAG_BYTES, UNSEALED_SCHEME, PassphraseKey
from brokerapp.backup.manifest import BackupManifest
from brokerapp.backup.passphrase import ask_new
from brokerapp.backup.server_snapshot import ServerSnapshot
from brokerapp.errors import BackupRefused, ConfigurationRefused
from brokerapp.store.client.keys import StoreKeys
from brokerapp.system.environment import Environment
from tests.backup.restored_broker import PASSPHRASE, backup, restore

SIZES = [0, 1, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 3 * CHUNK_BYTES]


@pytest.fixture(scope="module")
def key():
    return PassphraseKey("a passphrase", b"salt" * 4, {"n": 2, "r": 1, "p": 1})


def sealed(key, content: bytes) -> bytes:
    encryptor = key.encryptor("part")
    return b"".join([encryptor.update(content[at : at + 1000]) for at in range(0, len(content), 1000)]) + (
        encryptor.finish()
    )


def opened(key, data: bytes, part: str = "part") -> bytes:
    decryptor = key.decryptor(part)
    return decryptor.update(data) + decryptor.finish()


@pytest.mark.parametrize("size", SIZES)
def test_what_is_encrypted_is_decrypted_again(key, size):
    content = bytes(number % 251 for number in range(size))
    data = sealed(key, content)
    assert len(data) == size + TAG_BYTES * max(1, -(-size // CHUNK_BYTES))
    assert opened(key, data) == content


def test_chunks_cannot_be_cut_off_exchanged_or_moved_to_another_part(key):
    chunk = CHUNK_BYTES + TAG_BYTES
    data = sealed(key, b"a" * CHUNK_BYTES + b"b" * CHUNK_BYTES + b"c" * 10)
    for wrong in (data[: 2 * chunk], data[chunk:], data[chunk : 2 * chunk] + data[:chunk] + data[2 * chunk :]):
        with pytest.raises(BackupRefused, match="cannot be decrypted"):
            opened(key, wrong)
    with pytest.raises(BackupRefused, match="cannot be decrypted"):
        opened(key, data, "another part")


@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [
        ("SLUICE_PASSWORD", "x", True),
        ("SLUICE_OIDC_CLIENT_SECRET", "x", True),
        ("SLUICE_PASSWORD_FILE", "/run/secrets/x", False),
        ("REDIS_URL", "redis://:secret@store:6379/0", True),
        ("REDIS_URL", "redis://store:6379/0", False),
        ("REDIS_URL", "redis://store:6379/0?password=secret", True),
        ("DATABASE_URL", "postgres://sluice:secret@db/sluice", True),
        ("SPARK_REMOTE", "sc://spark:15002/;token=secret", True),
        ("SLUICE_PORT", "8000", False),
    ],
)
def test_secrets_are_told_from_other_variables(name, value, secret):
    assert is_secret(name, value) is secret


def test_the_passphrase_itself_is_no_part_of_the_configuration():
    variables = {"SLUICE_BACKUP_PASSPHRASE": "x", "SLUICE_PORT": "8000", "HOME": "/", "REDIS_URL": "redis://s"}
    assert configured(variables) == {"REDIS_URL": "redis://s", "SLUICE_PORT": "8000"}


@pytest.mark.slow
def test_only_the_owner_may_read_a_backup(encrypted):
    assert stat.S_IMODE(encrypted.stat().st_mode) == 0o600


@pytest.mark.slow
def test_an_encrypted_backup_shows_no_message_and_no_password(encrypted, plain):
    words = [b"secret of the bridge", b"networkConnector"]
    assert [word for word in words if word in encrypted.read_bytes()] == []
    with BackupReader(encrypted) as reader:
        reader.unlock(PASSPHRASE)
        assert b"secret of the bridge" in reader.read("broker.xml")


@pytest.mark.slow
def test_without_a_passphrase_secrets_are_left_out_and_it_says_so(original, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("SLUICE_CLUSTER_PASSWORD", "secret of the cluster")
    assert backup(tmp_path / "file", "--data", original.data, "--config", original.config) == 0
    said = capsys.readouterr().out
    assert "left out: secrets, as the backup is not encrypted: SLUICE_CLUSTER_PASSWORD" in said
    assert "left out: original.xml, which may hold passwords, as the backup is not encrypted" in said
    assert b"secret of the cluster" not in (tmp_path / "file").read_bytes()


def made_by_hand(path: Path, parts: dict[str, bytes], key: PassphraseKey | None = None) -> Path:
    """Write a backup as anybody can who knows its form, and the passphrase if it is encrypted."""
    with BackupWriter(path, key) as writer:
        for name, content in parts.items():
            writer.add(name, content)
        writer.finish(BackupManifest("orders", "host", "2026-11-28T12:00:00", "1.0.0"))
    return path


def test_names_in_a_backup_lead_to_no_file_outside_of_the_data_folder(tmp_path):
    secrets = {"variables": {}, "files": {}, "named": {"../../OUTSIDE_FILE": "x"}}
    folder = tmp_path / "data"
    folder.mkdir()
    reader = BackupReader(made_by_hand(tmp_path / "file", {SECRETS: json.dumps(secrets).encode()}))
    with reader, pytest.raises(BackupRefused, match="OUTSIDE_FILE' is not the name of an environment variable"):
        restore_configuration(reader, folder)
    assert list(folder.iterdir()) == []


def test_a_part_that_is_not_encrypted_is_refused_in_a_backup_that_is(tmp_path, key):
    reader = BackupReader(made_by_hand(tmp_path / "file", {"store-0.rdb": b"of somebody without the passphrase"}))
    reader.manifest = replace(reader.manifest, encryption=key.parameters)
    with reader, pytest.raises(BackupRefused, match=r"was changed: its part store-0\.rdb is not encrypted"):
        reader.verify(print)


def with_manifest(path: Path, change: Callable[[dict], dict]) -> Path:
    """Give a backup another manifest with a correct checksum, as anybody can who may write the file."""
    with tarfile.open(path) as archive:
        members = [(each, archive.extractfile(each).read()) for each in archive.getmembers()]
    with tarfile.open(path, "w") as archive:
        for info, content in members:
            if info.name == manifest.NAME:
                document = json.loads(content)
                document["manifest"] = change(document["manifest"])
                digest = hashlib.sha256(json.dumps(document["manifest"], sort_keys=True).encode())
                content = json.dumps({**document, "sha256": digest.hexdigest()}).encode()
                info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return path


def test_a_changed_manifest_of_an_encrypted_backup_is_refused(tmp_path, key):
    file = with_manifest(
        made_by_hand(tmp_path / "file", {"store-0.rdb": b"x"}, key), lambda found: found | {"broker": "another"}
    )
    with BackupReader(file) as reader, pytest.raises(BackupRefused, match="its manifest was not made with this pass"):
        reader.unlock("a passphrase")


def test_an_encrypted_backup_cannot_be_passed_off_as_one_of_the_form_without_seal(tmp_path, key):
    file = with_manifest(
        made_by_hand(tmp_path / "file", {"store-0.rdb": b"x"}, key),
        lambda found: found | {"encryption": found["encryption"] | {"scheme": UNSEALED_SCHEME}},
    )
    with BackupReader(file) as reader, pytest.raises(BackupRefused, match="the passphrase is wrong"):
        reader.unlock("a passphrase")


def test_an_encrypted_backup_of_the_form_without_seal_is_read_and_it_says_so(tmp_path):
    key = PassphraseKey("a passphrase", b"salt" * 4, {"n": 2, "r": 1, "p": 1}, UNSEALED_SCHEME)
    with BackupReader(made_by_hand(tmp_path / "file", {"store-0.rdb": b"x"}, key)) as reader:
        reader.unlock("a passphrase")
        said: list[str] = []
        reader.verify(said.append)
        assert reader.read("store-0.rdb") == b"x"
    assert said[0].startswith("its manifest is not authenticated")


def test_a_passphrase_for_a_backup_that_is_not_encrypted_is_refused(tmp_path, passphrase_file, capsys, monkeypatch):
    file = made_by_hand(tmp_path / "file", {"store-0.rdb": b"x"})
    assert restore(file, "--data", tmp_path / "data", "--passphrase-file", passphrase_file) == 1
    assert f"{file} is not encrypted: leave out --passphrase-file if it never was" in capsys.readouterr().err
    for variable in ("SLUICE_BACKUP_PASSPHRASE", "SLUICE_BACKUP_PASSPHRASE_FILE"):
        with monkeypatch.context() as patched:
            patched.setenv(variable, str(passphrase_file))
            assert restore(file, "--data", tmp_path / "data") == 1
        assert f"{file} is not encrypted: leave out {variable} if it never was" in capsys.readouterr().err
    assert not (tmp_path / "data").exists()


@pytest.mark.slow
def test_a_backup_replaces_no_file(original, plain, capsys):
    before = plain.read_bytes()
    assert backup(plain, "--data", original.data) == 1
    assert "exists: choose another name, or delete it" in capsys.readouterr().err
    assert plain.read_bytes() == before


@pytest.mark.slow
def test_a_short_passphrase_is_refused(original, tmp_path, capsys):
    (tmp_path / "short").write_text("short\n")
    assert backup(tmp_path / "file", "--data", original.data, "--passphrase-file", tmp_path / "short") == 1
    assert "the passphrase must have at least 12 characters" in capsys.readouterr().err


def test_a_short_passphrase_is_refused_at_the_prompt_before_it_is_asked_for_again(monkeypatch):
    asked = []
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("getpass.getpass", lambda prompt: asked.append(prompt) or "short")
    with pytest.raises(BackupRefused, match="at least 12 characters"):
        ask_new()
    assert len(asked) == 1


def test_a_store_that_does_not_answer_is_named_with_the_reason(tmp_path, capsys):
    assert backup(tmp_path / "file", "--redis", "redis://:hidden@127.0.0.1:1/0", "--name", "orders") == 1
    assert capsys.readouterr().err == (
        "error: the store at redis://***@127.0.0.1:1/0 does not answer: connection refused\n"
    )


def test_a_broker_that_is_stopped_is_to_be_started_for_a_backup(tmp_path, capsys):
    socket = f"unix://{tmp_path}/valkey.sock"
    assert backup(tmp_path / "file", "--redis", socket, "--name", "orders") == 1
    assert capsys.readouterr().err == (
        f"error: the store at {socket} does not answer: no such file or directory: "
        "start Sluice, it is backed up while it runs\n"
    )


def test_a_disk_that_is_full_in_the_middle_of_a_snapshot_is_not_taken_for_a_failure_of_the_store(store_url):
    def write(_bytes):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with closing(ServerSnapshot(store_url, StoreKeys("full-disk"))) as snapshot:
        least = snapshot.facts().offset
        snapshot.prepare()
        snapshot.request()
        assert snapshot.wait_until_begun(least)
        with pytest.raises(OSError, match="No space left on device"):
            snapshot.read(write)


LIMITED = """
import resource, sys
from brokerapp.backup.command_line import backup
limit = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
sys.exit(backup(sys.argv[2:], "sluice"))
"""


@pytest.mark.slow
def test_a_disk_that_is_full_leaves_no_half_backup(original, plain, tmp_path):
    target = tmp_path / "target"
    target.mkdir()
    limit = plain.stat().st_size // 2
    command = [sys.executable, "-c", LIMITED, str(limit), str(target / "file"), "--data", str(original.data)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert f"the backup cannot be written to {target / 'file'}: File too large; nothing is left of it" in done.stderr
    assert list(target.iterdir()) == []
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY


@pytest.mark.slow
def test_a_backup_in_a_folder_that_does_not_exist_names_it(original, tmp_path, capsys):
    assert backup(Path(tmp_path, "none", "file"), "--data", original.data) == 1
    assert f"folder {tmp_path / 'none'} not found" in capsys.readouterr().err


def test_the_folder_for_backups_is_an_absolute_path():
    assert Environment.read({"SLUICE_DATA": "/data"}).backups == Path("/data/backups")
    assert Environment.read({"SLUICE_BACKUP_FOLDER": "/backups"}).backups == Path("/backups")
    with pytest.raises(ConfigurationRefused, match="SLUICE_BACKUP_FOLDER=backups must be an absolute path"):
        Environment.read({"SLUICE_BACKUP_FOLDER": "backups"})
