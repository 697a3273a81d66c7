"""Match texts and bodies: patterns of LIKE, regular expressions, XPath; each in bounded time."""
