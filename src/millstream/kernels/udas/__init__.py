"""Kernels that run programs of user-defined aggregates: over streams, windows, panes and contents."""
