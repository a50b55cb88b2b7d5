"""What every test process needs before anything heavy is imported."""

import os

# Test processes run side by side, one a core: threads of their own would wait for each other. What
# tests start (servers, workers) inherits this.
for _library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")
