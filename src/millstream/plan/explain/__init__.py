"""EXPLAIN: plans, patterns and conditions that patterns share, as text or as graphs."""
