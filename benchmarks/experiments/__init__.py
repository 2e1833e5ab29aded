"""Experiments that make one page: claims beside measurements."""
