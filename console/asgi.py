"""Serve pages over HTTP and live data over WebSocket, with an optional broker node in the process."""

from __future__ import annotations

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")
pages = get_asgi_application()  # sets Django up: what is imported below needs it

from channels.auth import AuthMiddlewareStack  # noqa: E402
from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402
from channels.security.websocket import AllowedHostsOriginValidator  # noqa: E402
from django.conf import settings  # noqa: E402
from django.urls import path  # noqa: E402

from console.accounts.impersonation import impersonation_middleware  # noqa: E402
from console.accounts.second_factor import second_factor_middleware  # noqa: E402
from console.broker.live.socket import LiveConsumer  # noqa: E402
from console.ops.broker_host import lifespan  # noqa: E402
from console.ops.request_limits import limit_requests  # noqa: E402
from console.ui.url_converters import keep_encoded_slashes  # noqa: E402

application = ProtocolTypeRouter(
    {
        "http": limit_requests(keep_encoded_slashes(pages), settings.DATA_UPLOAD_MAX_MEMORY_SIZE),
        "websocket": AllowedHostsOriginValidator(
            AuthMiddlewareStack(
                second_factor_middleware(impersonation_middleware(URLRouter([path("live", LiveConsumer.as_asgi())])))
            )
        ),
        "lifespan": lifespan,
    }
)
