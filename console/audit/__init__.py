"""The audit trail: writes entries and deletes old ones."""
