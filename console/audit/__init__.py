"""Write audit entries, search them and delete old ones."""
