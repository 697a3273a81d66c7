"""Export a document as one PNG, as long as the document is."""

from __future__ import annotations

import io

import pypdfium2
from PIL import Image

from console.analyses.exports.document import ExportDocument
from console.analyses.exports.pdf_file import render_long_page

#: Image pixels for each point of the page.
SCALE = 2.0
#: Pixels of the longest image that browsers and mail programs show.
MAX_PIXELS = 28_000


def render_png(document: ExportDocument) -> bytes:
    """Return the document as a PNG; a very long one is drawn with fewer pixels."""
    with pypdfium2.PdfDocument(render_long_page(document)) as pages:
        scale = min(SCALE, MAX_PIXELS / sum(page.get_height() for page in pages))
        parts = [page.render(scale=scale).to_pil() for page in pages]
    # What is longer than a page of PDF may be has several.
    image = Image.new("RGB", (parts[0].width, sum(each.height for each in parts)), "white")
    top = 0
    for each in parts:
        image.paste(each, (0, top))
        top += each.height
    out = io.BytesIO()
    image.save(out, format="PNG", optimize=False)
    return out.getvalue()
