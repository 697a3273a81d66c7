"""Pages about messages, dead letters and message jobs."""
