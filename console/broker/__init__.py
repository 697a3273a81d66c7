"""Access to the broker: gateway, mirror of its numbers, and tasks for workers."""
