"""How a run is worked off: queue, worker, pipeline, attempts, reports."""
