"""Results of analyses: storage, charts and their images, CSV export, pages of tables."""
