"""Rejected, expired and failed messages: redelivery, expiration, dead-lettering."""
