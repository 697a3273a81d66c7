"""Messages between the node that owns a log and the nodes of its producers and consumers."""
