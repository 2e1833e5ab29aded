"""Experiments that make one page: what was claimed beside what was measured."""
