"""Where things stand in the arrays of local tables: for who writes programs, without NumPy and Numba.

The modules with compiled helpers repeat what they use, as this one is no part of the digest of compiled
sources, and make sure that it is the same.
"""

from __future__ import annotations

META = {"size": 0, "free": 1, "next_id": 2, "touched": 3, "gone": 4, "room": 5}
"""Of a table."""

CHAIN = {"after": 0, "before": 1, "code": 2, "owner": 3}
"""Of a row in a hash chain."""

NODE = {"left": 0, "right": 1, "up": 2, "priority": 3}
"""Of a row in a tree."""

ENDS = {"first": 0, "last": 1, "root": 2}
"""Of an instance's tree."""
