"""Single words that `core` gives to pages as texts; longer texts are collected from the code."""

WORDS: tuple[str, ...] = ("missing",)
