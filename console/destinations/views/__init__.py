"""Pages about queues, topics, connections and subscribers."""
