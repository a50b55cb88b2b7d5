"""The accountant: from phases to ε, and from a budget to noise."""
