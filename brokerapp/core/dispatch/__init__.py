"""Takes messages from logs and topics to consumers, and their acknowledgements back."""
