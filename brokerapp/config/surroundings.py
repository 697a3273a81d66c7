"""What a configuration file's text is read with: values for its placeholders, and the files beside it that it names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from brokerapp.errors import ConfigurationRefused

#: Bytes a file of properties, or a login configuration, may have.
MAX_BYTES = 1_000_000

_SCHEME = re.compile(r"(file|classpath):(//)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Without a folder nothing but the text is read: it may come from anybody's browser."""

    properties: Mapping[str, str]
    folder: Path | None = None

    def read(self, location: str) -> str:
        """The text of a file, named as Spring names it; relative ones lie beside the configuration file.

        Raises ConfigurationRefused, which says why it cannot be read.
        """
        if self.folder is None:
            raise ConfigurationRefused(f"{location} is not read: here only the text itself counts")
        path = self.folder / _SCHEME.sub("", location.strip())
        try:
            if path.stat().st_size > MAX_BYTES:
                raise ConfigurationRefused(f"{path} is larger than {MAX_BYTES} bytes")
            return path.read_text("utf-8", "replace")
        except (OSError, ValueError) as wrong:
            raise ConfigurationRefused(f"cannot read {path}: {getattr(wrong, 'strerror', None) or wrong}") from wrong
