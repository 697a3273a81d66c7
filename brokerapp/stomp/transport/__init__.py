"""Sockets that carry STOMP: TCP, TLS and WebSocket, login and heartbeats."""
