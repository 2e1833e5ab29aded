"""Running queries: start, progress, heartbeats, rejected tuples, clean-up."""
