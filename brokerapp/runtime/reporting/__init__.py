"""What a node tells others: its status, the statistics of its destinations, and the trace of messages."""
