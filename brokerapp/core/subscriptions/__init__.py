"""Subscriptions of clients: consumers, durable and shared subscriptions, retained messages."""
