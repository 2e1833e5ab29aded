"""Names of the columns that kernels read and write beside those of the user."""

from __future__ import annotations

from millstream.windows.window_properties import Partitioning

KEY, KEY2 = "__ms_key", "__ms_key2"
"""Columns (bigint) that identify the partition of a tuple: the value itself, or two hashes of it. A NULL in
the first is a key of its own; without the columns all tuples are of one partition."""

PART, PART2 = "__ms_part", "__ms_part2"
"""Columns that identify the partition of the stream in which windows are counted, where it is not the key."""

Columns = tuple[str, str]
WHOLE: Columns = ("", "")
BY_KEY: Columns = (KEY, KEY2)
BY_PART: Columns = (PART, PART2)
"""Windows are counted in the whole stream, in each group, or in partitions of their own."""
PARTITIONS = {Partitioning.WHOLE: WHOLE, Partitioning.BY_KEY: BY_KEY, Partitioning.BY_PART: BY_PART}
"""Columns that tell the partitions of a window apart."""

STARTS, ENDS = "__ms_starts", "__ms_ends"
"""Columns that say which tuples start and end windows."""

PLACED = "__ms_placed"
"""A column that says which tuples have a place, where some have none."""

INSIDE = "__ms_inside"
"""A column that tells which tuples count; the others are in the stream, but not wanted in its windows."""

TUPLE = "__ms_tuple"
"""A column that is true for tuples, and NULL for the results of panes among them."""

SIDE = "__ms_side"
"""The column (tinyint) that tells which input a row is of, where there are two."""

OP = "__ms_op"
"""A column (tinyint): 1 if a row enters, -1 if it leaves. Without it all rows enter."""

UNTIL = "__ms_until"
"""A column (bigint): the last instant at which a row is there, as far as that is known when it enters."""

ID, ID2 = "__ms_id", "__ms_id2"
"""Columns (bigint) by which a row that leaves is found again."""

JOINED = "__ms_part_of"
"""A column (tinyint): 0 for a pair, 1 for a row of the left side, 2 for one of the right side."""

LEFT, LEFT2, RIGHT, RIGHT2 = "__ms_left", "__ms_left2", "__ms_right", "__ms_right2"
"""Columns (bigint) with the identities of the rows of a pair."""

JOIN_KEY, JOIN_KEY2 = "__ms_join_key", "__ms_join_key2"
"""The key by which the rows of a pair have met."""

JOIN_PARTS = (JOINED, LEFT, LEFT2, RIGHT, RIGHT2)

BRANCH = "__ms_branch"
"""A column that tells to which query of a shared stage a row belongs."""
