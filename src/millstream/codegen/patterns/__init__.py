"""Code generation for sequence patterns: attempts, matches, measures, cached conditions."""
