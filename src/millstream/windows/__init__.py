"""Windows: what they are, and (a file per kind) the papers' definitions as pure functions."""
