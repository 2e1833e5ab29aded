"""The long tests: many kills, tens of millions of rows, hours of stream time."""
