"""The process that evaluates XPath: `python -m brokerapp.selectors.xpath.worker SOCKET`, started by xpath_process.py.

A child answers questions, each within a moment of the processor's time, or dies of it. Then its parent says so in its
place, and makes another one, which is there at once.

An expression is compiled once, into a transformation that asks `<xsl:if test="..">` of the whole document: in XPath's
own terms that is its truth at the document node, where ActiveMQ asks it too. Nothing outside the body is read: no
entities, no network, no files. A body that is no XML or has a document type declaration is no match, and so is one for
which the expression cannot be computed.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import struct
import sys
from functools import lru_cache
from multiprocessing.connection import Connection

from lxml import etree

#: What a question begins with: a body whose text is UTF-8, or that says its encoding itself; an expression for the last
#: body; an expression that only has to be right. Then come the seconds of the processor's time that it may take.
TEXT, BYTES, EXPRESSION, CHECK = b"T", b"B", b"X", b"C"
MOMENT = struct.Struct("<f")
#: The answers. What is wrong with an expression follows the last one.
YES, NO, OVERRUN, WRONG = b"1", b"0", b"?", b"!"

#: Bytes of memory the process may have.
MEMORY = 1 << 30
#: Expressions kept compiled.
CACHED_EXPRESSIONS = 1024

_XSL = "http://www.w3.org/1999/XSL/Transform"
_SAFE = {"resolve_entities": False, "no_network": True, "load_dtd": False, "remove_comments": True}
_PARSERS = {BYTES: etree.XMLParser(**_SAFE), TEXT: etree.XMLParser(**_SAFE, encoding="utf-8")}
_ANY_DOCUMENT = etree.Element("any")


def main(socket: int) -> None:
    """Serve until who asks is gone."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    connection = Connection(socket)
    while child := os.fork():
        _, status = os.waitpid(child, 0)
        if status == 0:
            return
        with contextlib.suppress(OSError):  # the next child sees whether who asks is gone
            connection.send_bytes(OVERRUN)
    _serve(connection)


def _serve(connection: Connection) -> None:
    document: etree._Element | None = None
    while True:
        try:
            question = connection.recv_bytes()
        except EOFError:
            return
        kind, [moment], content = question[:1], MOMENT.unpack_from(question, 1), question[1 + MOMENT.size :]
        signal.setitimer(signal.ITIMER_PROF, moment)  # its signal ends the process, wherever that is
        if kind in _PARSERS:
            document = _document(content, _PARSERS[kind])
            answer = NO if document is None else YES
        elif kind == EXPRESSION:
            answer = NO if document is None else _asked(content.decode(), document)
        else:
            answer = _checked(content.decode())
        signal.setitimer(signal.ITIMER_PROF, 0)
        connection.send_bytes(answer)


def _document(body: bytes, parser: etree.XMLParser) -> etree._Element | None:
    try:
        root = etree.fromstring(body, parser)
    except (etree.XMLSyntaxError, ValueError):
        return None
    return None if root.getroottree().docinfo.doctype else root


def _asked(expression: str, document: etree._Element) -> bytes:
    try:
        return YES if bytes(_transformation(expression)(document)) else NO
    except (etree.XSLTApplyError, MemoryError):
        return NO


def _checked(expression: str) -> bytes:
    """Check that an expression is valid XPath 1.0 without undefined functions, variables or prefixes."""
    try:
        _transformation(expression)(_ANY_DOCUMENT)
    except (etree.XSLTParseError, ValueError):
        return WRONG + b"this is no XPath 1.0"
    except etree.XSLTApplyError as wrong:
        return WRONG + str(wrong).lower().encode()
    return YES


@lru_cache(maxsize=CACHED_EXPRESSIONS)
def _transformation(expression: str) -> etree.XSLT:
    sheet = etree.Element(f"{{{_XSL}}}stylesheet", version="1.0")
    etree.SubElement(sheet, f"{{{_XSL}}}output", method="text")
    template = etree.SubElement(sheet, f"{{{_XSL}}}template", match="/")
    etree.SubElement(template, f"{{{_XSL}}}if", test=expression).text = "true"
    return etree.XSLT(sheet, regexp=False, access_control=etree.XSLTAccessControl.DENY_ALL)


if __name__ == "__main__":
    main(int(sys.argv[1]))
