"""Types that old listings leave out: each is settled by the first use that says what it is.

An open type passes through the type checker as UNKNOWN does. Where two types meet, in an assignment
or a comparison, says so here, and checks again for as long as something new has been learnt.
"""

from __future__ import annotations

from dataclasses import dataclass

from millstream.types import NULL, UNKNOWN, Kind, Type


@dataclass(frozen=True, eq=False)
class OpenType(Type):
    """The type of a parameter or column that was declared without one; to others it is UNKNOWN."""

    kind: Kind = Kind.UNKNOWN
    owner: str = ""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Type) and not other.is_known

    def __hash__(self) -> int:
        return hash(UNKNOWN)


class OpenTypes:
    """Knowledge about the open types of one aggregate.

    >>> from millstream.types import INT, STRING
    >>> types = OpenTypes()
    >>> a, b = types.new("a"), types.new("b")
    >>> types.meet(a, b)
    >>> types.meet(b, STRING)
    >>> print(types.closed(a), types.closed(b))
    string string
    """

    def __init__(self) -> None:
        self._settled: dict[str, Type] = {}
        self._by_literal: dict[str, Type] = {}
        self._count = 0

    def new(self, owner: str) -> OpenType:
        self._count += 1
        return OpenType(owner=owner)

    @property
    def known(self) -> int:
        """Number of settled types; another pass is due while it grows."""
        return len(self._settled)

    @property
    def all_settled(self) -> bool:
        return len(self._settled) == self._count

    def settled(self, type_: Type) -> Type:
        """Return the type that an open type has been settled to: known, another open type, or itself."""
        while isinstance(type_, OpenType) and type_.owner in self._settled:
            type_ = self._settled[type_.owner]
        return type_

    def closed(self, type_: Type) -> Type:
        """Return the known type that an open type has been settled to, or UNKNOWN."""
        settled = self.settled(type_)
        return UNKNOWN if isinstance(settled, OpenType) else settled

    def meet(self, one: Type, other: Type, *, literal: bool = False) -> None:
        """Settle one of two types by the other; with ``literal`` a 0 or '' does, which all else outweighs."""
        one, other = self.settled(one), self.settled(other)
        if not isinstance(one, OpenType):
            one, other = other, one
        if not isinstance(one, OpenType) or one is other or other == NULL:
            return
        if literal:
            self._by_literal.setdefault(one.owner, other)
        elif other.is_known or (isinstance(other, OpenType) and other.owner != one.owner):
            self._settled[one.owner] = other

    def settle_by_literal(self) -> bool:
        """Let a literal have its say about one type that nothing else has settled."""
        for owner, type_ in self._by_literal.items():
            if owner not in self._settled:
                self._settled[owner] = type_
                return True
        return False
