"""What messages of JMS clients are beside their headers and body."""
