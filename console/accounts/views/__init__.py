"""Pages about users, groups, roles, API tokens and one's own account."""
