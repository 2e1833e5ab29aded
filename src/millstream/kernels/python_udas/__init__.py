"""User-defined aggregates in Python: instances, their context and state, conversion of values."""
