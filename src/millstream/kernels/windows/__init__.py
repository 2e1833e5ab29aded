"""Aggregates over bracket windows: a window assigner for each kind, and the sweep over panes."""
