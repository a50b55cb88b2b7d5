"""Where runs are worked off: on this machine, or on others that a launcher knows."""
