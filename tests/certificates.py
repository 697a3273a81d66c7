"""Create certificates for tests: an authority, and keys with certificates it signed, as files of several kinds."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)

PASSWORD = "secret"
LOCAL = ("localhost", "127.0.0.1")
Key = ec.EllipticCurvePublicKey | rsa.RSAPublicKey


class Authority:
    """Signs certificates, and writes them into a folder."""

    def __init__(self, folder: Path, name: str = "Test Authority") -> None:
        self.folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _named(name)
        self.certificate = self._sign(self._name, self._key.public_key(), authority=True)
        self.pem = folder / "authority.pem"
        self.pem.write_bytes(self.certificate.public_bytes(Encoding.PEM))

    def _sign(
        self, subject: x509.Name, key: Key, authority: bool = False, days: float = 2, hosts: tuple[str, ...] = LOCAL
    ) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        names = [_general_name(each) for each in hosts]
        usage = x509.KeyUsage(True, False, False, False, False, authority, authority, False, False)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=30))
            .not_valid_after(now + datetime.timedelta(days=days))
            .add_extension(x509.BasicConstraints(authority, None), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .sign(self._key, hashes.SHA256())
        )

    def issue(
        self, name: str, *, days: float = 2, hosts: tuple[str, ...] = LOCAL, rsa_key: bool = False,
        folder: Path | None = None,
    ) -> Identity:  # fmt: skip
        """A key with a certificate that is valid for so many days more, for these hosts."""
        key = rsa.generate_private_key(65537, 2048) if rsa_key else ec.generate_private_key(ec.SECP256R1())
        signed = self._sign(_named(name), key.public_key(), days=days, hosts=hosts)
        return Identity(folder or self.folder, name, key, signed, self.certificate)


class Identity:
    """A key with its certificate, in files: NAME.p12 (with PASSWORD), NAME.pem (both), NAME.crt and NAME.key."""

    def __init__(self, folder: Path, name: str, key, certificate, authority) -> None:
        self.p12, self.pem = folder / f"{name}.p12", folder / f"{name}.pem"
        self.crt, self.key, self.locked_key = (folder / f"{name}.{end}" for end in ("crt", "key", "locked.key"))
        locked = BestAvailableEncryption(PASSWORD.encode())
        self.p12.write_bytes(
            pkcs12.serialize_key_and_certificates(name.encode(), key, certificate, [authority], locked)
        )
        self.crt.write_bytes(certificate.public_bytes(Encoding.PEM))
        self.key.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        self.locked_key.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, locked))
        self.pem.write_bytes(self.key.read_bytes() + self.crt.read_bytes())
        self.der = certificate.public_bytes(Encoding.DER)


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])


def shake_hands(server: ssl.SSLContext, authority: Authority, client=None) -> tuple[ssl.SSLObject, ssl.SSLObject]:
    """Let a client that trusts the authority shake hands with a server, in memory; return both ends."""
    context = ssl.create_default_context(cafile=authority.pem)
    if client is not None:
        context.load_cert_chain(client.pem)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = context.wrap_bio(to_client, to_server, server_hostname="localhost")
    theirs = server.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(4):
        for side in (ours, theirs):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    return ours, theirs
