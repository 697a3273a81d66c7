"""Connection to Valkey: handshake, function libraries, keys."""
