"""Pages about queues, topics, connections and subscriptions."""
