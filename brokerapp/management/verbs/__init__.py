"""The verbs of brokerctl: their options, and what they do."""
