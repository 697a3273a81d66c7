"""Connections of clients, whatever protocol they speak: sockets, logins, limits and back-pressure."""
