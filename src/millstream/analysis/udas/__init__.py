"""Bodies of user-defined aggregates: their rules, and their elaboration to the typed form."""
