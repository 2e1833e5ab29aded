"""What does not grow: the cost of a row with its window, that of a stream with its length, and errors."""
