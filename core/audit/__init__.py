"""Audits: attacks on a model's own code, and the lower bounds on ε that they prove."""
