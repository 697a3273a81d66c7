"""What the process asks of its operating system: clock, timers, environment, directories, locks."""
