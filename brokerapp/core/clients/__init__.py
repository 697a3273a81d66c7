"""Connected clients and bridges."""
