"""Operators of logical plans as stages: one module for each kind."""
