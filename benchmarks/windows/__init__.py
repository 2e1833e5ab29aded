"""The papers' experiments on windows, growth for every kind of window, and peers: ``make bench-windows``."""
