"""How each type is encoded: layouts derived from the fields, and functions compiled from the layouts."""
