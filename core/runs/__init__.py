"""Runs: what was asked, what happened, what came out; kept on disk, worked off by workers."""
