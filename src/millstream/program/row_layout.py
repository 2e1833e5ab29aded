"""Layout of the arrays of local tables, for code generation, without NumPy and Numba.

Modules with compiled helpers repeat the numbers that they use, as this one is no part of the digest of
compiled sources, and assert that they are the same.
"""

from __future__ import annotations

META = {"size": 0, "free": 1, "next_id": 2, "touched": 3, "gone": 4, "room": 5}
"""Numbers of a table."""

CHAIN = {"after": 0, "before": 1, "code": 2, "owner": 3}
"""Numbers of a row in a hash chain."""

NODE = {"left": 0, "right": 1, "up": 2, "priority": 3}
"""Numbers of a row in a tree."""

ENDS = {"first": 0, "last": 1, "root": 2}
"""Numbers of an instance's tree."""
