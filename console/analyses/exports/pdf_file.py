"""Export a document as a PDF: pages of A4 in light colours, or one page as long as the document for an image."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any
from xml.sax.saxutils import escape

from reportlab.lib.colors import HexColor
from reportlab.lib.pagesizes import A4, landscape
from reportlab.lib.styles import ParagraphStyle
from reportlab.lib.units import mm
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import (
    BaseDocTemplate,
    CondPageBreak,
    Flowable,
    Frame,
    Image,
    KeepTogether,
    LongTable,
    PageTemplate,
    Paragraph,
    Spacer,
    Table,
)

from analytics.results.chart_images import FONT_FOLDER
from console.analyses.exports.document import ExportChart, ExportDocument, ExportSection, ExportTable

_INK, _SOFT, _LINE, _FAINT, _LINK = map(HexColor, ("#15202b", "#556372", "#cfd7df", "#eef1f4", "#0069a6"))
_WARNING, _WARNING_INK = HexColor("#fdf2da"), HexColor("#6b4500")
_ERROR, _ERROR_INK = HexColor("#fdecea"), HexColor("#8c1d17")
_MARGIN = 16 * mm
#: Columns from which on a page is turned.
_WIDE_TABLE = 8
#: The least width of a column of text in points, and the space between columns.
_MIN_TEXT, _GAP = 48.0, 8.0
#: Width in points of the one page that becomes an image, and with a table of many columns.
IMAGE_WIDTH, WIDE_IMAGE_WIDTH = 680.0, 860.0
#: The part of a page's height that a chart may take.
_CHART_SHARE = 0.8
#: The tallest page that PDF allows, in points.
MAX_HEIGHT = 14_400.0
_FONT, _BOLD = "Sluice", "Sluice-Bold"


@cache
def _register_fonts() -> None:
    """Register the font of the charts: the fonts of PDF itself have Latin letters only."""
    pdfmetrics.registerFont(TTFont(_FONT, FONT_FOLDER / "DejaVuSans.ttf"))
    pdfmetrics.registerFont(TTFont(_BOLD, FONT_FOLDER / "DejaVuSans-Bold.ttf"))
    pdfmetrics.registerFontFamily(_FONT, normal=_FONT, bold=_BOLD, italic=_FONT, boldItalic=_BOLD)


def _style(size: float, **more: Any) -> ParagraphStyle:
    return ParagraphStyle(
        "", **({"fontName": _FONT, "fontSize": size, "leading": size * 1.4, "textColor": _INK} | more)
    )


_TITLE = _style(17, fontName=_BOLD, leading=21, spaceAfter=3)
_SECTION = _style(13, fontName=_BOLD)
_CAPTION = _style(9.5, fontName=_BOLD, spaceAfter=4)
_TEXT = _style(10)
_MUTED = _style(8.5, textColor=_SOFT)
_CELL = _style(7.5, leading=9.8)
_NUMBER = _style(7.5, leading=9.8, alignment=2)
_HEAD = _style(7, leading=8.8, textColor=_SOFT)
_HEAD_NUMBER = _style(7, leading=8.8, textColor=_SOFT, alignment=2)
_FIGURE = _style(14, fontName=_BOLD, leading=18)


def render_pdf(document: ExportDocument) -> bytes:
    """Return the document as pages of A4, turned where a table has many columns; heads of tables are repeated."""
    return _build(document, landscape(A4) if _is_wide(document) else A4, has_numbers=True)


def _is_wide(document: ExportDocument) -> bool:
    return any(len(table.heads) >= _WIDE_TABLE for each in document.sections for table in each.tables)


def render_long_page(document: ExportDocument) -> bytes:
    """Return the document as one page that is as long as it is, up to what PDF allows."""
    _register_fonts()
    full = WIDE_IMAGE_WIDTH if _is_wide(document) else IMAGE_WIDTH
    width = full - 2 * _MARGIN
    height = sum(_height(each, width) for each in _story(document, width, MAX_HEIGHT)) + 2 * _MARGIN + 24
    return _build(document, (full, min(height, MAX_HEIGHT)), has_numbers=False)


def _height(flowable: Flowable, width: float) -> float:
    if isinstance(flowable, KeepTogether):
        return sum(_height(each, width) for each in flowable._content)
    if isinstance(flowable, CondPageBreak):
        return 0
    return flowable.wrap(width, MAX_HEIGHT)[1] + flowable.getSpaceBefore() + flowable.getSpaceAfter()


def _build(document: ExportDocument, size: tuple[float, float], *, has_numbers: bool) -> bytes:
    _register_fonts()
    out = io.BytesIO()
    frame = Frame(_MARGIN, _MARGIN, size[0] - 2 * _MARGIN, size[1] - 2 * _MARGIN, 0, 0, 0, 0)
    made = BaseDocTemplate(out, pagesize=size, title=document.title, author="Sluice", lang="en")
    made.addPageTemplates(PageTemplate(frames=[frame], onPage=_footer(document, size, has_numbers=has_numbers)))
    made.build(list(_story(document, size[0] - 2 * _MARGIN, size[1] - 2 * _MARGIN)))
    return out.getvalue()


def _footer(document: ExportDocument, size: tuple[float, float], *, has_numbers: bool) -> Callable[[Canvas, Any], None]:
    def draw(canvas: Canvas, page: Any) -> None:
        canvas.setFont(_FONT, 7.5)
        canvas.setFillColor(_SOFT)
        canvas.drawString(_MARGIN, _MARGIN * 0.55, document.footer)
        if has_numbers:
            canvas.drawRightString(size[0] - _MARGIN, _MARGIN * 0.55, f"Page {page.page}")

    return draw


def _story(document: ExportDocument, width: float, height: float) -> Iterator[Flowable]:
    yield _paragraph(document.title, _TITLE, url=document.url)
    yield from (_paragraph(each, _MUTED) for each in document.lines)
    yield from (_note(each, width, is_error=True) for each in document.warnings)
    is_single = len(document.sections) == 1
    if not is_single:
        yield Spacer(1, 8)
        for each in document.sections:
            yield Paragraph(f"<b>{_markup(each.title)}</b>: {_markup(each.sentence)}", _TEXT)
    for each in document.sections:
        yield Spacer(1, 8 if is_single else 20)
        yield from _section(each, width, height, is_single=is_single)


def _section(section: ExportSection, width: float, height: float, *, is_single: bool) -> Iterator[Flowable]:
    if not is_single:
        yield CondPageBreak(40 * mm)
        yield _paragraph(section.title, _SECTION, url=section.url)
        yield _paragraph(section.parameters, _MUTED)
        yield Spacer(1, 4)
    if section.is_failed:
        yield _note(section.sentence, width, is_error=True)
    else:
        yield _paragraph(section.sentence, _TEXT)
    yield from (_note(each, width) for each in section.warnings)
    if section.headline:
        yield Spacer(1, 8)
        yield _facts([(label, _paragraph(value, _FIGURE)) for label, value in section.headline], width, below=True)
    if section.facts:
        yield Spacer(1, 8)
        yield _facts([(label, _paragraph(value, _style(8.5))) for label, value in section.facts], width, below=False)
    for chart in section.charts:
        yield Spacer(1, 14)
        yield KeepTogether([_paragraph(chart.title, _CAPTION), _image(chart, width, height * _CHART_SHARE)])
    for table in section.tables:
        yield Spacer(1, 14)
        yield CondPageBreak(30 * mm)
        yield _paragraph(table.title, _CAPTION)
        yield _table(table, width)
        if table.omitted:
            yield Spacer(1, 4)
            yield _paragraph(table.omitted, _MUTED)


def _facts(facts: Sequence[tuple[str, Paragraph]], width: float, *, below: bool) -> Table:
    """Return labels with values, three in a row; the label below the value of a headline figure."""
    cells = [
        [value, _paragraph(label, _MUTED)] if below else [_paragraph(label, _MUTED), value] for label, value in facts
    ]
    rows = [cells[place : place + 3] for place in range(0, len(cells), 3)]
    rows[-1] += [""] * (3 - len(rows[-1]))
    return Table(rows, [width / 3] * 3, style=[
        ("VALIGN", (0, 0), (-1, -1), "TOP"), ("LEFTPADDING", (0, 0), (-1, -1), 0), ("TOPPADDING", (0, 0), (-1, -1), 2),
        ("BOTTOMPADDING", (0, 0), (-1, -1), 4),
    ])  # fmt: skip


def _note(text: str, width: float, *, is_error: bool = False) -> Table:
    style = _style(9, textColor=_ERROR_INK if is_error else _WARNING_INK)
    return Table([[_paragraph(text, style)]], [width], splitInRow=1, spaceBefore=6, spaceAfter=2, style=[
        ("BACKGROUND", (0, 0), (-1, -1), _ERROR if is_error else _WARNING), ("ROUNDEDCORNERS", [4, 4, 4, 4]),
        ("LEFTPADDING", (0, 0), (-1, -1), 8), ("TOPPADDING", (0, 0), (-1, -1), 4),
        ("BOTTOMPADDING", (0, 0), (-1, -1), 6),
    ])  # fmt: skip


def _image(chart: ExportChart, width: float, height: float) -> Image:
    scale = min(width / chart.width, height / chart.height)
    return Image(io.BytesIO(chart.png), chart.width * scale, chart.height * scale, hAlign="LEFT")


def _table(table: ExportTable, width: float) -> LongTable:
    heads = [
        Paragraph(_markup(label) + (f"<br/>{_markup(unit)}" if unit else ""), _HEAD_NUMBER if is_number else _HEAD)
        for label, unit, is_number in table.heads
    ]
    texts = [[f"topic {cell.text}" if cell.kind == "topic" else cell.text for cell in row] for row in table.rows]
    widths = column_widths(table.heads, texts, width) if texts else [width / len(heads)] * len(heads)
    columns = [
        (column, _NUMBER if is_number else _CELL) for column, (_, _, is_number) in zip(widths, table.heads, strict=True)
    ]
    rows = [[_cell(text, *column) for text, column in zip(row, columns, strict=True)] for row in texts]
    rows = rows or [[_paragraph("No data in this time range.", _MUTED), *[""] * (len(heads) - 1)]]
    numbers = [place for place, (_, _, is_number) in enumerate(table.heads) if is_number]
    return LongTable([heads, *rows], widths, repeatRows=1, splitInRow=1, hAlign="LEFT", style=[
        ("FONT", (0, 1), (-1, -1), _FONT, _CELL.fontSize, _CELL.leading), ("TEXTCOLOR", (0, 1), (-1, -1), _INK),
        *[("ALIGN", (place, 1), (place, -1), "RIGHT") for place in numbers],
        ("VALIGN", (0, 0), (-1, 0), "BOTTOM"), ("VALIGN", (0, 1), (-1, -1), "TOP"),
        ("LEFTPADDING", (0, 0), (-1, -1), 0), ("RIGHTPADDING", (0, 0), (-1, -1), _GAP),
        ("TOPPADDING", (0, 0), (-1, -1), 2.5), ("BOTTOMPADDING", (0, 0), (-1, -1), 3.5),
        ("LINEBELOW", (0, 0), (-1, 0), 0.7, _LINE), ("LINEBELOW", (0, 1), (-1, -1), 0.5, _FAINT),
        *([] if texts else [("SPAN", (0, 1), (-1, 1))]),
    ])  # fmt: skip


def _cell(text: str, width: float, style: ParagraphStyle) -> str | Paragraph:
    """Return a text that fits as it is, which takes a tenth of the time, and others as a paragraph with line breaks."""
    shown = _printable(text)
    fits = "\n" not in shown and pdfmetrics.stringWidth(shown, _FONT, style.fontSize) <= width - _GAP
    return shown if fits else _paragraph(text, style)


def column_widths(heads: Sequence[tuple[str, str, bool]], rows: Sequence[Sequence[str]], width: float) -> list[float]:
    """Return the widths of columns in points: numbers in one line, texts share what is left by their lengths."""
    _register_fonts()
    natural, least = [], []
    for place, (label, unit, is_number) in enumerate(heads):
        words = [*label.split(), *unit.split()]
        head = max((pdfmetrics.stringWidth(each, _FONT, _HEAD.fontSize) for each in words), default=0)
        cells = max((pdfmetrics.stringWidth(row[place], _FONT, _CELL.fontSize) for row in rows), default=0)
        natural.append(max(head, cells) + _GAP + 1)
        least.append(natural[-1] if is_number else min(natural[-1], max(head + _GAP + 1, _MIN_TEXT)))
    missing = sum(natural) - width
    if missing <= 0:
        return natural
    spare = [full - minimum for full, minimum in zip(natural, least, strict=True)]
    if sum(spare) >= missing:
        share = missing / sum(spare)
        return [full - extra * share for full, extra in zip(natural, spare, strict=True)]
    return [each * width / sum(least) for each in least]


def _paragraph(text: str, style: ParagraphStyle, url: str = "") -> Paragraph:
    marked = _markup(text)
    return Paragraph(f'<a href="{escape(url, {chr(34): "&quot;"})}">{marked}</a>' if url else marked, style)


def _markup(text: str) -> str:
    """Escape a text for a paragraph, with its line ends."""
    return escape(_printable(text)).replace("\n", "<br/>")


def _printable(text: str) -> str:
    """Replace control characters but line ends, which have no glyph."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() or each == "\n" else "\N{REPLACEMENT CHARACTER}" for each in text)
