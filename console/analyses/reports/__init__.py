"""Reports: analyses bundled into a page that is made again and again, kept, and mailed."""
