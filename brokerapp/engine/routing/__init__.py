"""Decides which queues and subscriptions a message goes to."""
