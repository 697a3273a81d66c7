"""How the body of a message can be read: as text, as JSON or XML set out over lines, as hex. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass

from lxml import etree

#: Bytes of a body that a page shows.
SHOWN = 256 * 1024
#: Bytes shown in hex, sixteen a line.
SHOWN_HEX = 16 * 1024
#: Text with a larger share of control characters is not worth reading as text.
MAX_CONTROLS = 0.02


@dataclass(frozen=True, slots=True)
class Reading:
    """One way to read a body; `note` says what the reader should know about it."""

    name: str
    label: str
    text: str
    note: str = ""


def readings(body: bytes) -> list[Reading]:
    """The ways in which this body can be read, the most telling first; hex always."""
    found = [each for each in (_json(body), _xml(body), _text(body)) if each]
    return [*found, _hex(body)]


def as_typed(body: bytes) -> str | None:
    """A body as text that can be written anew without loss; None when it is no such text."""
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return None
    controls = any((character < " " and character not in "\t\n") or character == "\x7f" for character in text)
    return None if controls else text


def _json(body: bytes) -> Reading | None:
    if len(body) > SHOWN or body.lstrip()[:1] not in (b"{", b"["):
        return None
    try:
        text = json.dumps(json.loads(body), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return None
    return Reading("json", "JSON", text)


def _xml(body: bytes) -> Reading | None:
    if len(body) > SHOWN or not body.lstrip().startswith(b"<"):
        return None
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, remove_blank_text=True)
    try:
        tree = etree.fromstring(body, parser)
        text = etree.tostring(tree.getroottree(), pretty_print=True, encoding="unicode")
    except (etree.XMLSyntaxError, ValueError):
        return None
    return Reading("xml", "XML", text.rstrip("\n"))


def _text(body: bytes) -> Reading | None:
    shown = body[:SHOWN]
    try:
        text = shown.decode()
    except UnicodeDecodeError as error:
        if len(body) <= SHOWN or error.start < SHOWN - 4:  # else only the cut fell into a character
            return None
        text = shown[: error.start].decode()
    controls = sum(character < " " and character not in "\t\n\r" for character in text)
    if controls > MAX_CONTROLS * len(text):
        return None
    note = f"The first {len(shown):,} of {len(body):,} bytes." if len(body) > SHOWN else ""
    return Reading("text", "Text", text, note)


def _hex(body: bytes) -> Reading:
    shown = body[:SHOWN_HEX]
    lines = []
    for offset in range(0, len(shown), 16):
        chunk = shown[offset : offset + 16]
        digits = f"{chunk[:8].hex(' '):<23}  {chunk[8:].hex(' '):<23}"
        letters = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in chunk)
        lines.append(f"{offset:08x}  {digits}  {letters}")
    note = f"The first {len(shown):,} of {len(body):,} bytes." if len(body) > SHOWN_HEX else ""
    return Reading("hex", "Hex", "\n".join(lines), note)
