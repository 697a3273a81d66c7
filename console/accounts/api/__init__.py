"""REST operations on users, groups and effective rights."""
