"""The format of an archive, and how an archive of an earlier version is upgraded."""
