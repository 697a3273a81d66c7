"""Check and upgrade what an earlier version stored in the console's database and in the archive."""
