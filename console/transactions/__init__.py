"""Prepared transactions: distributed transactions (XA) that wait for their second phase."""
