"""Sluice beside ActiveMQ Classic and RabbitMQ, over STOMP, with the same durability: see docs/benchmarks.md."""
