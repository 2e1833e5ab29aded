"""Results that are maintained at every instant: a paper's experiments, state, and joins beside peers."""
