"""OpenWire, the protocol of JMS clients: what its commands hold, and how they are encoded. Without I/O."""
