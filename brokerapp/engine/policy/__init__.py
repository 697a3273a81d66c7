"""Decides by policy: permissions, persistence, redelivery, dead letters, flow control."""
