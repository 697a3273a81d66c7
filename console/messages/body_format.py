"""Renders message bodies as text, formatted JSON or XML, and hex. No I/O."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from lxml import etree

from brokerapp.model.jms.form import JmsForm
from brokerapp.openwire.shown_messages import JmsContent, TypedValue, read_content

#: Bytes of a body that a page shows.
MAX_TEXT_BYTES = 256 * 1024
#: Bytes shown in hex, sixteen a line.
MAX_HEX_BYTES = 16 * 1024
#: Values of a map or stream that a page shows.
MAX_VALUES = 1_000
#: A body with a larger share of control characters is not shown as text.
MAX_CONTROL_SHARE = 0.02


@dataclass(frozen=True, slots=True)
class BodyRendering:
    """A body in one format; `note` is a remark for the reader, such as a cut."""

    name: str
    label: str
    text: str
    note: str = ""
    values: tuple[TypedValue, ...] = ()  #: shown as a table instead of the text


def render_body(body: bytes, form: JmsForm | None = None) -> list[BodyRendering]:
    """Return the renderings of a body, the most structured first; `form`: of a message from a JMS client.

    Hex is always included, but for objects, of which only the name of the class is shown.
    """
    content = read_content(form, body) if form is not None else None
    if form is not None and content is not None:
        return _render_content(form.kind, content, body)
    found = [each for each in (_render_json(body), _render_xml(body), _render_text(body)) if each]
    return [*found, _render_hex(body)]


def _render_content(kind: str, content: JmsContent, body: bytes) -> list[BodyRendering]:
    if content.class_name:
        return [
            BodyRendering("class", "Class", content.class_name, "Java objects are not read: only the class is shown.")
        ]
    if content.problem:
        return [replace(_render_hex(body), note=content.problem)]
    shown = content.values[:MAX_VALUES]
    text = "\n".join(f"{each.name}\t{each.type}\t{each.value}" for each in shown)
    cut = f"The first {MAX_VALUES:,} of {len(content.values):,} values." if len(content.values) > MAX_VALUES else ""
    note = cut if shown else "No values."
    return [BodyRendering("values", kind.capitalize(), text, note, shown), _render_hex(body)]


def editable_text(body: bytes) -> str | None:
    """Return a body as text that survives editing in a form; None for anything else."""
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return None
    controls = any((character < " " and character not in "\t\n") or character == "\x7f" for character in text)
    return None if controls else text


def _render_json(body: bytes) -> BodyRendering | None:
    if len(body) > MAX_TEXT_BYTES or body.lstrip()[:1] not in (b"{", b"["):
        return None
    try:
        text = json.dumps(json.loads(body), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return None
    return BodyRendering("json", "JSON", text)


def _render_xml(body: bytes) -> BodyRendering | None:
    if len(body) > MAX_TEXT_BYTES or not body.lstrip().startswith(b"<"):
        return None
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, remove_blank_text=True)
    try:
        tree = etree.fromstring(body, parser)
        text = etree.tostring(tree.getroottree(), pretty_print=True, encoding="unicode")
    except (etree.XMLSyntaxError, ValueError):
        return None
    return BodyRendering("xml", "XML", text.rstrip("\n"))


def _render_text(body: bytes) -> BodyRendering | None:
    shown = body[:MAX_TEXT_BYTES]
    try:
        text = shown.decode()
    except UnicodeDecodeError as error:
        if len(body) <= MAX_TEXT_BYTES or error.start < MAX_TEXT_BYTES - 4:  # otherwise only the cut split a character
            return None
        text = shown[: error.start].decode()
    controls = sum(character < " " and character not in "\t\n\r" for character in text)
    if controls > MAX_CONTROL_SHARE * len(text):
        return None
    note = f"The first {len(shown):,} of {len(body):,} bytes." if len(body) > MAX_TEXT_BYTES else ""
    return BodyRendering("text", "Text", text, note)


def _render_hex(body: bytes) -> BodyRendering:
    shown = body[:MAX_HEX_BYTES]
    lines = []
    for offset in range(0, len(shown), 16):
        chunk = shown[offset : offset + 16]
        digits = f"{chunk[:8].hex(' '):<23}  {chunk[8:].hex(' '):<23}"
        letters = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in chunk)
        lines.append(f"{offset:08x}  {digits}  {letters}")
    note = f"The first {len(shown):,} of {len(body):,} bytes." if len(body) > MAX_HEX_BYTES else ""
    return BodyRendering("hex", "Hex", "\n".join(lines), note)
