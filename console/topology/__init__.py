"""The place of this broker among others: its nodes, bridges to and from other brokers, its cluster; and what keeps a
message from crossing."""
