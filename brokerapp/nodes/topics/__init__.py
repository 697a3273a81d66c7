"""Topics whose publishers and subscribers are at different nodes."""
