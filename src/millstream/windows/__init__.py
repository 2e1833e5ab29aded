"""Descriptions and properties of windows, and panes of slots, for planner and kernels alike."""
