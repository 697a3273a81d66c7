"""Store the schedule of backups and the backups that were made."""
