"""Advisories: what the broker tells about itself on the topics `ActiveMQ.Advisory.*`, in ActiveMQ's words."""

from brokerapp.core.advisories.publisher import Advisories

__all__ = ["Advisories"]
