"""Alternatives to Millstream: a module is a command that measures one of them (see contract.py)."""
