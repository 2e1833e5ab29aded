"""From plan nodes to stages: kernels, their columns and layouts."""
