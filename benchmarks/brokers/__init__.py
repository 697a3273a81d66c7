"""The brokers that are compared, each started as a process of its own."""
