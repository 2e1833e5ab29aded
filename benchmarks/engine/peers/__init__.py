"""What people would use otherwise: a module is a command that measures one of them (contract.py says how)."""
