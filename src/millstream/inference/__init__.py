"""Inference on conditions of sequence patterns: implications, contradictions, shift and next (OPS)."""
