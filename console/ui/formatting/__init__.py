"""Format numbers and times, page tables and compare JSON values; no I/O."""
