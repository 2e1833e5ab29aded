"""Aggregates written in ESL that come with Millstream: a file for each, which has its name."""
