"""Plan: choose a model and a budget before anything is spent."""
