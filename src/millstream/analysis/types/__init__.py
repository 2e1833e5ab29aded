"""Types of expressions by Spark's rules, quantities, implicit casts, and elaboration to the typed form."""
