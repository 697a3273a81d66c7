"""LoadContext: values for a configuration file's placeholders, and access to the files that it names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from brokerapp.errors import ConfigurationRefused

#: Bytes a file of properties, of a login configuration or of imported beans may have.
MAX_BYTES = 1_000_000

_SCHEME = re.compile(r"(?:(file|classpath):(//)?|([a-z][a-z0-9+.-]+):)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class LoadContext:
    """Values for placeholders, and the file's folder. Without a folder only the text itself is read."""

    properties: Mapping[str, str]
    folder: Path | None = None  #: where the file lies
    file: str = ""  #: what an imported file was called where it was imported; "": the configuration itself
    importing: tuple[Path, ...] = ()  #: the configuration and the imports that led to this file, itself included
    adds: bool = False  #: what is defined is added to what stands: what ActiveMQ has built in is none of it
    classpath: Path | None = None  #: where `classpath:` begins, when not in `folder`

    def of_import(self, name: str, path: Path) -> LoadContext:
        """Return the context of a file that this one imports."""
        return replace(
            self, folder=path.parent, file=name, importing=(*self.importing, path),
            classpath=self.classpath or self.folder,
        )  # fmt: skip

    def path(self, location: str) -> Path:
        """Return the path of a Spring location; a relative one lies beside this file."""
        if self.folder is None:
            raise ConfigurationRefused(f"{location} is not read: an import reads no other files")
        scheme, name = _SCHEME.match(location.strip()), _SCHEME.sub("", location.strip(), count=1)
        if scheme is not None and scheme[3] is not None:
            raise ConfigurationRefused(f"{location} is not read: it is not a local file")
        of_classpath = scheme is not None and scheme[1].lower() == "classpath"
        base = self.classpath or self.folder if of_classpath else self.folder
        try:
            return (base / (name.lstrip("/") if of_classpath else name)).resolve()
        except (OSError, ValueError, RuntimeError) as wrong:
            raise ConfigurationRefused(f"{location!r} is not a file name") from wrong

    def read(self, location: str) -> str:
        """Return the text of a file.

        Raises ConfigurationRefused, which says why it cannot be read.
        """
        return self.read_bytes(location).decode("utf-8", "replace")

    def read_bytes(self, location: str) -> bytes:
        """Return the bytes of a file. Raises ConfigurationRefused, which says why it cannot be read."""
        path = self.path(location)
        try:
            if path.exists() and not path.is_file():  # reading a pipe or a device might never end
                raise ConfigurationRefused(f"{path} is not a file")
            if path.stat().st_size > MAX_BYTES:
                raise ConfigurationRefused(f"{path} is larger than {MAX_BYTES} bytes")
            return path.read_bytes()
        except (OSError, ValueError) as wrong:
            raise ConfigurationRefused(f"cannot read {path}: {getattr(wrong, 'strerror', None) or wrong}") from wrong
