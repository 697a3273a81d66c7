"""Read the secrets of an installation: from variables, from files that NAME_FILE names, or from systemd's credentials.

What is read from a file stays out of the environment: child processes read the file themselves, so that no secret is
in the environment or on the command line of a process.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from brokerapp.errors import ConfigurationRefused

#: Variables that hold a secret, or an address with a secret in it, and what the secret is.
SECRET_VARIABLES: Mapping[str, str] = {
    "REDIS_URL": "password of the store",
    "DATABASE_URL": "password of the console's database",
    "SLUICE_TLS_PASSWORD": "password of the key for TLS",
    "SLUICE_CLUSTER_PASSWORD": "password with which the brokers of a cluster sign in to each other",
    "SLUICE_MAIL": "password of the mail server",
    "SLUICE_OIDC_CLIENT_SECRET": "secret of the client of single sign-on",
    "SLUICE_PASSWORD": "password that `activemq.xml` takes as `${SLUICE_PASSWORD}`",
    "SLUICE_BACKUP_PASSPHRASE": "passphrase that encrypts the secrets in backups",
    "SPARK_REMOTE": "token of the Spark Connect server",
    "OTEL_EXPORTER_OTLP_HEADERS": "headers with which spans are exported",
    "OTEL_EXPORTER_OTLP_TRACES_HEADERS": "the same, for traces alone",
}
#: Where systemd puts what LoadCredential= names.
CREDENTIALS = "CREDENTIALS_DIRECTORY"


def with_secrets(variables: Mapping[str, str]) -> dict[str, str]:
    """Return these variables, with the secrets that are in files. Raises ConfigurationRefused."""
    found = dict(variables)
    for name in SECRET_VARIABLES:
        if files := list(_files(name, variables)):
            found[name] = _only_secret(name, variables, files)
    return found


def _files(name: str, variables: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    """Yield the files that have this secret, each with what an operator set to name it."""
    variable = f"{name}_FILE"
    if path := variables.get(variable):
        yield f"{variable}={path}", Path(path)
    if (folder := variables.get(CREDENTIALS)) and (credential := Path(folder, name)).exists():
        yield f"the credential {name} of systemd ({credential})", credential


def _only_secret(name: str, variables: Mapping[str, str], files: list[tuple[str, Path]]) -> str:
    sources = [*([name] if variables.get(name) else []), *(source for source, _ in files)]
    if len(sources) > 1:
        raise ConfigurationRefused(f"{' and '.join(sources)} are set: set only one of them")
    [(source, path)] = files
    # The processes of an installation have different working directories.
    if not path.is_absolute():
        raise ConfigurationRefused(f"{source} must be an absolute path")
    try:
        secret = path.read_text(encoding="utf-8").rstrip("\r\n")
    except OSError as error:
        raise ConfigurationRefused(f"{source} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigurationRefused(f"{source} cannot be read: not UTF-8 text") from None
    if not secret:
        raise ConfigurationRefused(f"{source} is empty")
    return secret
