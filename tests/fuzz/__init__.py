"""Seeded damage of everything that unbag reads: short in the suite, long by `make fuzz`."""
