"""Steps by which the database of an earlier version becomes that of this one."""
