"""Export a document as one HTML file: styles and images are in it, nothing is loaded."""

from __future__ import annotations

from django.template.loader import render_to_string

from console.analyses.exports.document import ExportDocument
from console.ui.formatting.absolute_urls import absolute_url


def render_html(document: ExportDocument) -> bytes:
    """Return the document as HTML in UTF-8. Names link to their pages in the console."""
    return render_to_string("analyses/export.html", {"document": document, "console": absolute_url("")}).encode()
