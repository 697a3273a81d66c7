"""Advisories: what the broker tells about itself on the topics `ActiveMQ.Advisory.*`, in ActiveMQ's words."""

from brokerapp.advisories.advisories import Advisories

__all__ = ["Advisories"]
