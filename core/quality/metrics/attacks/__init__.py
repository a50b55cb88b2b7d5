"""Attacks on the people of a table: simple ones, trained ones, and one test of them all."""
