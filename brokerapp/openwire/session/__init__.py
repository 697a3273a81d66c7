"""State of an OpenWire connection: commands of the client in, commands of the broker out. No I/O."""
