"""Access to the operating system: clock, timers, environment, directories, locks."""
