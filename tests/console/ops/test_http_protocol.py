"""Test that what is not HTTP is reported once, with the address that it came from."""

import asyncio
import logging

import uvicorn

from console.ops.serving.http_protocol import ReportingHttpProtocol


async def test_what_is_not_http_is_reported_by_its_address_once_a_minute_in_place_of_uvicorn_s_line(caplog):
    config = uvicorn.Config(
        "console.asgi:application", port=0, http=ReportingHttpProtocol, lifespan="off", log_config=None
    )
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve())
    async with asyncio.timeout(20):
        while not server.started:
            await asyncio.sleep(0.01)
        logging.getLogger().addHandler(caplog.handler)  # the application set up logging when it was loaded
        own = []
        for _ in range(2):
            reader, writer = await asyncio.open_connection(*server.servers[0].sockets[0].getsockname())
            own.append(writer.get_extra_info("sockname")[1])
            writer.write(b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n")
            assert (await reader.read()).startswith(b"HTTP/1.1 400")
            writer.close()
        server.should_exit = True
        await serving
    reports = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    assert reports == [f"the client at 127.0.0.1:{own[0]} sent what is not HTTP"]
