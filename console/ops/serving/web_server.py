"""Serve the console or the monitoring endpoints with uvicorn, over TLS where the installation has a certificate.

`python -m console.ops.serving.web_server console` (or `monitor`) is a process of the installation. With a certificate
the console's port speaks HTTPS, and leads clients there that do not. The monitoring endpoints speak both at their port:
browsers that know the console by HTTPS only come by HTTPS (HSTS is for all ports of a host), monitors as configured.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import sys
from typing import Any

import uvicorn
from uvicorn.config import STARTUP_FAILURE

from brokerapp.connections.installation_tls import tls_stores
from brokerapp.connections.shared_port import Protocols, SharedPort, open_sockets
from brokerapp.connections.tls_renewal import ServerContext, keep_renewed
from brokerapp.errors import CONFIGURATION_EXIT_CODE, ConfigurationRefused
from brokerapp.management.output import write_error
from brokerapp.system.environment import Environment
from console.accounts.secret_key import KEY_FILE_NAME, secret_key
from console.ops.serving.http_protocol import ReportingHttpProtocol

logger = logging.getLogger("uvicorn.error")

#: Seconds for browsers' WebSockets and STOMP clients to be told that the process ends.
CLOSING_SECONDS = 5
CONSOLE, MONITOR = "console", "monitor"


def server(service: str, environment: Environment) -> uvicorn.Server:
    """Return the server of one of the two services. Raises ConfigurationRefused for a certificate that is no use."""
    if service == CONSOLE:
        secret_key(environment.data / KEY_FILE_NAME)  # before Django's settings name cookies by it
    config = _console(environment) if service == CONSOLE else _monitor(environment)
    if not environment.console_tls:
        return uvicorn.Server(config)
    context = ServerContext(tls_stores(environment), use=service)
    return TlsServer(config, context, environment, redirects=service == CONSOLE)


def _console(environment: Environment) -> uvicorn.Config:
    # Nobody is believed who says for whom they ask, but the proxies that are named: locks and the audit trail go by it.
    proxies: dict[str, Any] = {"proxy_headers": bool(environment.proxies)}
    if environment.proxies:
        proxies["forwarded_allow_ips"] = environment.proxies
    return uvicorn.Config(
        "console.asgi:application", host=environment.bind, port=environment.console_port, ws="websockets-sansio",
        http=ReportingHttpProtocol,
        access_log=False, timeout_graceful_shutdown=CLOSING_SECONDS, **proxies,
    )  # fmt: skip


def _monitor(environment: Environment) -> uvicorn.Config:
    return uvicorn.Config(
        "console.exporters.server.asgi:application", host=environment.plain_bind, port=environment.monitor_port,
        http=ReportingHttpProtocol, lifespan="off", access_log=False, timeout_graceful_shutdown=CLOSING_SECONDS,
    )  # fmt: skip


class TlsServer(uvicorn.Server):
    """uvicorn's server at a port that clients with and without TLS share; the latter may be redirected."""

    def __init__(
        self, config: uvicorn.Config, context: ServerContext, environment: Environment, *, redirects: bool
    ) -> None:
        super().__init__(config)
        self._context, self._environment, self._redirects = context, environment, redirects

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Take the ports, start what is served there, and accept connections."""
        redirect_port = self._environment.http_port if self._redirects else None
        try:
            own = open_sockets(self.config.host, self.config.port)
            further = [] if redirect_port is None else open_sockets(self.config.host, redirect_port)
        except OSError as error:
            logger.error(error)
            sys.exit(STARTUP_FAILURE)
        await super().startup(sockets=[])  # it opens none
        plain = self._redirecting(None) if self._redirects else self._protocol
        host, port = own[0].getsockname()[:2]
        address = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
        ports = [SharedPort(own, self._context, self._protocol, plain, name=address)]
        if further:
            led = self._redirecting(self._environment.public_port)
            ports.append(SharedPort(further, self._context, self._protocol, led, name=f"port {redirect_port}"))
        self.servers = ports  # type: ignore[assignment]  # they close as its own do
        self._renewal = asyncio.create_task(keep_renewed([self._context.held]), name="certificates")
        logger.info("Uvicorn running on %s", address)

    def _protocol(self) -> asyncio.Protocol:
        """Return uvicorn's protocol of a connection, as its own `startup` makes it."""
        return self.config.http_protocol_class(  # type: ignore[call-arg]
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )

    @staticmethod
    def _redirecting(port: int | None) -> Protocols:
        from django.conf import settings  # read once the application is loaded

        from console.ops.serving.https_redirect import redirecting

        return redirecting(settings.ALLOWED_HOSTS, port)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept no more, and end as uvicorn does."""
        self._renewal.cancel()
        await super().shutdown(sockets)


def main() -> int:
    """Serve until SIGTERM or SIGINT; return the exit code."""
    try:
        serving = server(sys.argv[1], Environment.read())
    except ConfigurationRefused as wrong:
        return _refuse(str(wrong))
    try:
        with contextlib.suppress(KeyboardInterrupt):
            serving.run()
    except SystemExit:  # uvicorn's own end of a start that failed; its lifespan exists once the application is loaded
        state = serving.lifespan.state if hasattr(serving, "lifespan") else {}
        if refused := state.get(ConfigurationRefused.code):
            return _refuse(refused)
        raise
    return 0 if serving.started else STARTUP_FAILURE


def _refuse(reason: str) -> int:
    """Write why the configuration is refused as the last line, which the supervisor repeats; return the exit code."""
    write_error(reason)
    return CONFIGURATION_EXIT_CODE


if __name__ == "__main__":
    sys.exit(main())
