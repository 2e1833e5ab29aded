"""Memory and rate against the slide of a window of 40,000 tuples: figures 6 and 7 of the ESL paper."""
