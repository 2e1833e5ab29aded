"""Bundled examples that play themselves: what ``millstream demo`` shows."""
