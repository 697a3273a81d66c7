"""Configuration of network connectors: addresses, options, filters, limits."""
