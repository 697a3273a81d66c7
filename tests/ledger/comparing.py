"""Compare the result of an analysis with the ledger. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import isclose
from typing import Any

from tests.ledger.expected import Expected

#: Labels of figures that name what is slowest: of each destination one is expected, and the analysis shows some.
SOME = "p95 at "


def check(kind: str, expected: Expected, headline: Mapping[str, Any], tables: Mapping[str, Any]) -> None:
    """Fail with all differences, if there are any."""
    tell(differences(kind, expected, headline, tables))


def tell(found: Iterable[str]) -> None:
    """Fail with these differences, if there are any."""
    differing = list(found)
    assert not differing, "\n".join(["", *differing])


def differences(kind: str, expected: Expected, headline: Mapping[str, Any], tables: Mapping[str, Any]) -> list[str]:
    """Each figure that is not as expected, that is missing, or that nobody expects."""
    return [*_of_headline(kind, expected.headline, headline), *_of_tables(kind, expected, tables)]


def _of_headline(kind: str, expected: Mapping[str, Any], got: Mapping[str, Any]) -> Iterator[str]:
    shown = {label for label in expected if label in got or not label.startswith(SOME)}
    yield from _of_row(kind, {label: expected[label] for label in shown}, got)


def _of_tables(kind: str, expected: Expected, got: Mapping[str, Any]) -> Iterator[str]:
    for name in expected.tables.keys() ^ got.keys():
        yield f"{kind}.{name}: a table that is {'missing' if name in expected.tables else 'not expected'}"
    for name in expected.tables.keys() & got.keys():
        key, wanted = expected.tables[name]
        rows, found = ({tuple(row[each] for each in key): row for row in each} for each in (wanted, got[name]))
        if len(found) < len(got[name]):
            yield f"{kind}.{name}: two rows of one {', '.join(key)}"
        for each in sorted(rows.keys() | found.keys(), key=str):
            where = f"{kind}.{name}[{', '.join(map(str, each))}]"
            if each not in found and _may_be_missing(rows[each]):
                continue
            if each not in rows or each not in found:
                yield f"{where}: a row that is {'missing' if each in rows else 'not expected'}: {found.get(each)}"
                continue
            yield from _of_row(where, rows[each], found[each])


def _may_be_missing(row: Mapping[str, Any]) -> bool:
    """Whether nothing must have happened: all its numbers may be 0."""
    numbers = [each for each in row.values() if isinstance(each, tuple)]
    return bool(numbers) and all(least == 0 for least, _ in numbers) and "depth" not in row


def _of_row(where: str, expected: Mapping[str, Any], got: Mapping[str, Any]) -> Iterator[str]:
    for name in sorted(expected.keys() ^ got.keys()):
        yield f"{where}.{name}: {'missing' if name in expected else f'not expected: {got[name]}'}"
    for name in sorted(expected.keys() & got.keys()):
        if not _is_right(expected[name], got[name]):
            yield f"{where}.{name}: expected {_shown(expected[name])}, got {got[name]}"


def _is_right(expected: Any, got: Any) -> bool:
    if expected is ...:
        return True
    if isinstance(expected, tuple):
        least, most = expected
        if isinstance(least, float):  # what is rounded may be next to its bound
            least, most = least - 1e-6 * abs(least), most + 1e-6 * abs(most)
        return got is not None and least <= got <= most
    if callable(expected):
        return bool(expected(got))
    if isinstance(expected, float) and isinstance(got, (int, float)):
        return isclose(expected, got, rel_tol=1e-9, abs_tol=1e-9)
    return expected == got


def _shown(expected: Any) -> str:
    return f"{expected[0]} to {expected[1]}" if isinstance(expected, tuple) else str(expected)
