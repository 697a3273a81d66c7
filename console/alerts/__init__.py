"""Alert rules, their evaluation, and the delivery of notifications."""
