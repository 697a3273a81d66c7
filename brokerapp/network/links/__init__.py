"""STOMP connections that bridges open."""
