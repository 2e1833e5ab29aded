"""Several patterns in one stream: what each costs by itself, and what they cost together."""
