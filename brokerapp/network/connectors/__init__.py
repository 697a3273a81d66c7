"""The network connectors of a broker: running, storing, administration, diagnosis."""
