"""EXPLAIN: plans, patterns and what patterns share, as text or as graphs."""
