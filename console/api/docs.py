"""Serve the API reference with Swagger UI from this server, under the console's policy."""

from __future__ import annotations

from ninja.openapi.docs import Swagger


class SwaggerViewer(Swagger):
    """Render Swagger UI with the console's settings."""

    def __init__(self) -> None:
        # Deep links are links inside the buttons that open operations, which a screen reader does not find.
        super().__init__({"deepLinking": False, "persistAuthorization": False, "validatorUrl": None})
