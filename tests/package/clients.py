"""Speak STOMP to a broker of which nothing but its port is known."""

from __future__ import annotations

import socket


def exchange(port: int, body: str) -> tuple[str, str]:
    """Send a message and receive it; return what the server calls itself, and the body."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection, connection.makefile("rwb") as stream:

        def tell(*lines: str, text: str = "") -> None:
            stream.write(("\n".join(lines) + f"\n\n{text}\0").encode())
            stream.flush()

        def hear() -> tuple[str, dict[str, str], str]:
            frame = b""
            while not frame.endswith(b"\0"):
                byte = stream.read(1)
                assert byte, f"the connection was closed after {frame!r}"
                frame += byte
            head, _, text = frame[:-1].decode().lstrip("\n").partition("\n\n")
            command, *headers = head.split("\n")
            return command, dict(each.split(":", 1) for each in headers), text

        tell("CONNECT", "accept-version:1.2", "host:localhost")
        command, connected, _ = hear()
        assert command == "CONNECTED", connected
        tell("SEND", "destination:/queue/package", "persistent:true", "receipt:stored", text=body)
        assert hear()[:2] == ("RECEIPT", {"receipt-id": "stored"})
        tell("SUBSCRIBE", "id:1", "destination:/queue/package", "ack:auto")
        command, _, received = hear()
        assert command == "MESSAGE"
        return connected["server"], received
