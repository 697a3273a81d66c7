"""The formats of exports, and the rows of tables that each has."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from django.http import HttpResponse

from console.analyses.exports.document import MAX_ROWS, ExportDocument
from console.analyses.exports.html_file import render_html


def _pdf(document: ExportDocument) -> bytes:
    from console.analyses.exports.pdf_file import render_pdf  # loads fonts and libraries that only exports need

    return render_pdf(document)


def _png(document: ExportDocument) -> bytes:
    from console.analyses.exports.png_file import render_png

    return render_png(document)


@dataclass(frozen=True, slots=True)
class ExportFormat:
    """A format: how it is called, its media type, rows of each table, and the function that renders it."""

    name: str
    label: str
    media_type: str
    max_rows: int
    render: Callable[[ExportDocument], bytes]


#: Rows in an image: it has one page, which is read on a screen.
IMAGE_ROWS = 50

FORMATS = {
    each.name: each
    for each in (
        ExportFormat("html", "HTML", "text/html", MAX_ROWS, render_html),
        ExportFormat("pdf", "PDF", "application/pdf", MAX_ROWS, _pdf),
        ExportFormat("png", "PNG", "image/png", IMAGE_ROWS, _png),
    )
}

#: The formats as the API names them, and what its operations return.
ExportFormatName = Literal["html", "pdf", "png"]
FILES: dict[str, Any] = {
    "openapi_extra": {
        "responses": {
            200: {
                "description": "The file",
                "content": {
                    each.media_type: {"schema": {"type": "string", "format": "binary"}} for each in FORMATS.values()
                },
            }
        }
    }
}

#: PDFium and matplotlib must not be used by two threads at once; and one export at a time limits the memory.
_LOCK = threading.Lock()


def export(format: str, build: Callable[[int], ExportDocument]) -> tuple[bytes, str]:
    """Render a document; return the file and its name. `build` gets the number of rows that tables may have."""
    wanted = FORMATS[format]
    with _LOCK:
        document = build(wanted.max_rows)
        return wanted.render(document), f"{document.file_name}.{format}"


def export_response(format: str, build: Callable[[int], ExportDocument]) -> HttpResponse:
    """Return a document as a file to download."""
    content, name = export(format, build)
    headers: dict[str, Any] = {
        "Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store",
    }  # fmt: skip
    return HttpResponse(content, content_type=FORMATS[format].media_type, headers=headers)
