"""Record the format of an archive, and refuse one that this version cannot use.

    archive/broker=B/_format.json    {"format": 2}; an archive of an earlier version has none, and format 1

| format | what is in it |
|---|---|
| 1 | Parquet files that may lack columns, hours that may have no manifest, indexes that may hash keys as once |
| 2 | each hour has a manifest, each file all columns and its record in the present index |

Format 1 is still read, so Sluice starts on it. `sluice upgrade` rewrites what is left of it (rewriting.py).
"""

from __future__ import annotations

import json
from pathlib import Path

from brokerapp.errors import ConfigurationRefused
from brokerapp.system import atomic_files
from brokerapp.system.formats import SupportedFormats

NAME = "_format.json"
#: The format of archives without a file about it.
UNRECORDED = 1
FORMATS = SupportedFormats("the archive", oldest=1, newest=2)


def read_format(broker: Path) -> int:
    """Return the format of a broker's archive. Raises ConfigurationRefused for a file that says none."""
    path = broker / NAME
    try:
        found = json.loads(path.read_bytes())["format"]
    except FileNotFoundError:
        return UNRECORDED
    except (ValueError, LookupError, TypeError) as error:
        raise ConfigurationRefused(f'{path} has no format: expected {{"format": NUMBER}}') from error
    if type(found) is not int:
        raise ConfigurationRefused(f"{path} has the format {found!r}: expected a whole number")
    return found


def write_format(broker: Path, number: int = FORMATS.newest) -> None:
    """Record the format of a broker's archive."""
    atomic_files.make_folder(broker)
    atomic_files.replace(broker / NAME, json.dumps({"format": number}).encode())


def check_archives(root: Path) -> list[Path]:
    """Return the folders of brokers in an archive that are of an earlier format.

    Raises ConfigurationRefused when this version cannot use one of them.
    """
    earlier = []
    for broker in sorted(root.glob("broker=*")):
        found = read_format(broker)
        FORMATS.check(found)
        if found < FORMATS.newest:
            earlier.append(broker)
    return earlier
