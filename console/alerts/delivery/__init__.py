"""Sends alerts by mail and webhook, with retries and limits."""
