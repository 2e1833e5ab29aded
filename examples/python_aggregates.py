"""Aggregates for python_aggregates.esl, in three of the forms that they can have."""

from collections import Counter


class MySum:
    """After EPIC: a state, to which tuples are added and from which they are removed again."""

    def init(self):
        return 0.0

    def add(self, state, x):
        return state + x

    def remove(self, state, x):
        return state - x


class Spread:
    """The largest of what is left cannot be told when the largest leaves, but states can be merged."""

    def init(self):
        return None

    def add(self, state, x):
        return self.merge(state, (x, x))

    def merge(self, a, b):
        if a is None or b is None:
            return a or b
        return min(a[0], b[0]), max(a[1], b[1])


class Rivals:
    """The four states of ESL. Each group has an object of its own, which may remember what it wants."""

    def initialize(self, ctx, bidder):
        self.bids = Counter()
        self.iterate(ctx, bidder)

    def iterate(self, ctx, bidder):
        self.bids[bidder] += 1
        ctx.ret(len(self.bids), bidder)

    def expire(self, ctx):
        gone = ctx.oldest()
        self.bids[gone] -= 1
        if not self.bids[gone]:
            del self.bids[gone]
            if len(self.bids) == 1:
                ctx.ret(1, *self.bids)
