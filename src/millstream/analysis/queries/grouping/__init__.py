"""GROUP BY: its keys, grouping sets, and what they rule out."""
