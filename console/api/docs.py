"""The page that shows the API's description: Swagger's viewer, from the same server, under the console's policy."""

from __future__ import annotations

from ninja.openapi.docs import Swagger


class Viewer(Swagger):
    """Swagger's viewer."""

    def __init__(self) -> None:
        super().__init__({"persistAuthorization": False, "validatorUrl": None})
