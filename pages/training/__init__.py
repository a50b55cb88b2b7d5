"""Training: watch a run and steer it."""
