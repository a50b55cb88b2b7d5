"""Files that go along with a synthetic table, so that analysts state how far figures may be off."""
