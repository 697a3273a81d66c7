"""Sluice beside ActiveMQ with the real Java client, over OpenWire."""
