"""Sources and sinks of our own."""
