"""Consistent reads of recorded events across archive and stream: snapshots, ranges, the trace of a message."""
