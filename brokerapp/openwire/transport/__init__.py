"""OpenWire on sockets."""
