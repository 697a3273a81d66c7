"""Serve static files: Plotly's script from its wheel, and a fingerprint for caching."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from django.contrib.staticfiles.finders import BaseFinder
from django.core.files.storage import FileSystemStorage
from django.http import HttpRequest, HttpResponse
from whitenoise.middleware import WhiteNoiseMiddleware
from whitenoise.responders import StaticFile

#: Under this name pages ask for it: `{% static "plotly/plotly.min.js" %}`.
PLOTLY = "plotly/plotly.min.js"
#: Plotly makes two style elements: an empty one, filled through the object model, and one for maps. The policy of pages
#: with charts names just these by their hashes; a browser test says when another version of Plotly needs others.
PLOTLY_STYLES = (
    "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='",
    "'sha256-ji27qzEtxXZW+7dun6UwjHXJ18e6WAin1VvNtkzIE/o='",
)
#: Packages whose static files we serve; their version stands for their files.
_PACKAGES = ("plotly", "django-htmx")


def fingerprint(folder: Path) -> str:
    """Return twelve hexadecimal digits that change with any static file of `folder` or a package."""
    digest = hashlib.sha256(" ".join(version(name) for name in _PACKAGES).encode())
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            digest.update(str(path.relative_to(folder)).encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


class PlotlyFinder(BaseFinder):
    """Find PLOTLY in the installed plotly package."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        # Located without importing plotly, which takes a second.
        package = Path(find_spec("plotly").origin).parent
        self._storage = _PlotlyStorage(location=package / "package_data")
        self._storage.prefix = "plotly"

    def find(self, path: str, find_all: bool = False) -> str | list[str]:
        """Return the path of the file, if it is Plotly's."""
        if path != PLOTLY:
            return []
        found = self._storage.path(Path(PLOTLY).name)
        return [found] if find_all else found

    def list(self, ignore_patterns: object) -> Iterator[tuple[str, FileSystemStorage]]:
        """Yield Plotly's file."""
        yield Path(PLOTLY).name, self._storage


class _PlotlyStorage(FileSystemStorage):
    prefix = "plotly"


class StaticFilesMiddleware(WhiteNoiseMiddleware):
    """Serve whole responses with WhiteNoise: an ASGI server cannot stream blocking reads."""

    @staticmethod
    def serve(static_file: StaticFile, request: HttpRequest) -> HttpResponse:
        """Return the file, or the answer that the browser's copy is current."""
        answer = static_file.get_response(request.method, request.META)
        content = b""
        if answer.file is not None:
            with answer.file:
                content = answer.file.read()
        response = HttpResponse(content, status=int(answer.status))
        del response["Content-Type"]
        for name, value in answer.headers:
            response[name] = value
        return response
