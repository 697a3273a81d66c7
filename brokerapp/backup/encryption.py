"""Encrypt the parts of a backup with a passphrase.

scrypt derives a key from the passphrase, and HKDF one for each part from that. A part is encrypted in chunks with
AES-256-GCM. The nonce of a chunk is its number and whether it is the last one, so that chunks cannot be exchanged, left
out or cut off unnoticed (the STREAM construction, which age and Tink use, too). The manifest is not encrypted, but
sealed with another key of these (HMAC-SHA-256).
"""

from __future__ import annotations

import hashlib
import hmac
import os
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from brokerapp.errors import BackupRefused

#: The scheme of new backups, and that of the first version, whose manifests have no seal. Their keys differ, so that a
#: sealed backup cannot be passed off as one of those.
SCHEME, UNSEALED_SCHEME = "scrypt-aes256gcm-stream-sealed", "scrypt-aes256gcm-stream"
#: With what the purpose of each derived key begins.
_PURPOSES = {SCHEME: "sluice sealed backup", UNSEALED_SCHEME: "sluice backup"}
SALT_BYTES, KEY_BYTES, TAG_BYTES = 16, 32, 16
#: Work factors of scrypt: 128 MiB and some 0.4 s for each attempt to guess.
SCRYPT = {"n": 2**17, "r": 8, "p": 1}
#: The largest work factors that a manifest may ask for: reading one must not take all memory.
MAX_SCRYPT = {"n": 2**20, "r": 16, "p": 4}
#: Bytes that are encrypted at once.
CHUNK_BYTES = 256 * 1024
#: What is encrypted to find out later whether a passphrase is the same.
_CHECK = b"sluice backup"


class PassphraseKey:
    """The key of one backup, derived from a passphrase."""

    def __init__(self, passphrase: str, salt: bytes, work: dict[str, int], scheme: str = SCHEME) -> None:
        self._salt, self._work, self._scheme = salt, work, scheme
        self._master = Scrypt(salt=salt, length=KEY_BYTES, **work).derive(passphrase.encode())

    @staticmethod
    def create(passphrase: str) -> PassphraseKey:
        """Return the key of a new backup."""
        return PassphraseKey(passphrase, os.urandom(SALT_BYTES), SCRYPT)

    @staticmethod
    def open(passphrase: str, parameters: dict[str, Any]) -> PassphraseKey:
        """Return the key of a backup with these parameters. Raises BackupRefused for another passphrase."""
        scheme = str(parameters.get("scheme"))
        if scheme not in _PURPOSES:
            raise BackupRefused(f"the backup is encrypted as {scheme!r}, expected one of {', '.join(_PURPOSES)}")
        try:
            work = {name: int(parameters[name]) for name in SCRYPT}
            salt, check = bytes.fromhex(parameters["salt"]), parameters["check"]
        except (KeyError, TypeError, ValueError):
            raise BackupRefused("the backup is damaged: the parameters of its encryption cannot be read") from None
        if any(not 1 <= work[name] <= most for name, most in MAX_SCRYPT.items()):
            raise BackupRefused("the backup is damaged: its encryption asks for too much memory")
        key = PassphraseKey(passphrase, salt, work, scheme)
        if key.parameters["check"] != check:
            raise BackupRefused("the passphrase is wrong: the backup was encrypted with another one")
        return key

    @property
    def parameters(self) -> dict[str, Any]:
        """Return what the manifest keeps, by which a passphrase gives the same key again."""
        check = AESGCM(self._derived("check")).encrypt(bytes(12), _CHECK, None)
        return {"scheme": self._scheme, "salt": self._salt.hex(), **self._work, "check": check.hex()}

    @property
    def seals(self) -> bool:
        """Return whether manifests of this scheme have a seal."""
        return self._scheme != UNSEALED_SCHEME

    def seal(self, manifest: bytes) -> str:
        """Return the seal of a manifest, which nobody without the passphrase can make; "" in the first scheme."""
        if not self.seals:
            return ""
        return hmac.digest(self._derived("manifest"), manifest, hashlib.sha256).hex()

    def encryptor(self, part: str) -> PartEncryptor:
        """Return what encrypts a part."""
        return PartEncryptor(self._derived(f"part {part}"))

    def decryptor(self, part: str) -> PartDecryptor:
        """Return what decrypts a part."""
        return PartDecryptor(self._derived(f"part {part}"), part)

    def _derived(self, purpose: str) -> bytes:
        return HKDF(SHA256(), KEY_BYTES, None, f"{_PURPOSES[self._scheme]} {purpose}".encode()).derive(self._master)


def _nonce(number: int, is_last: bool) -> bytes:
    return number.to_bytes(11, "big") + bytes([is_last])


class PartEncryptor:
    """Encrypts the bytes of one part, as they come."""

    def __init__(self, key: bytes) -> None:
        self._cipher, self._number, self._held = AESGCM(key), 0, bytearray()

    def update(self, data: bytes) -> bytes:
        """Take bytes and return what is encrypted of them; some are held until more come."""
        self._held += data
        done = []
        while len(self._held) > CHUNK_BYTES:  # what may be the last one is held
            done.append(self._chunk(bytes(self._held[:CHUNK_BYTES]), is_last=False))
            del self._held[:CHUNK_BYTES]
        return b"".join(done)

    def finish(self) -> bytes:
        """Return the last chunk."""
        return self._chunk(bytes(self._held), is_last=True)

    def _chunk(self, data: bytes, is_last: bool) -> bytes:
        number, self._number = self._number, self._number + 1
        return self._cipher.encrypt(_nonce(number, is_last), data, None)


class PartDecryptor:
    """Decrypts the bytes of one part, as they come. Raises BackupRefused for those that were changed."""

    def __init__(self, key: bytes, part: str) -> None:
        self._cipher, self._part, self._number, self._held = AESGCM(key), part, 0, bytearray()

    def update(self, data: bytes) -> bytes:
        """Take encrypted bytes and return what is decrypted of them."""
        self._held += data
        done, size = [], CHUNK_BYTES + TAG_BYTES
        while len(self._held) > size:
            done.append(self._chunk(bytes(self._held[:size]), is_last=False))
            del self._held[:size]
        return b"".join(done)

    def finish(self) -> bytes:
        """Return the content of the last chunk."""
        return self._chunk(bytes(self._held), is_last=True)

    def _chunk(self, data: bytes, is_last: bool) -> bytes:
        number, self._number = self._number, self._number + 1
        try:
            return self._cipher.decrypt(_nonce(number, is_last), data, None)
        except InvalidTag:
            raise BackupRefused(f"the backup is damaged: its part {self._part} cannot be decrypted") from None
