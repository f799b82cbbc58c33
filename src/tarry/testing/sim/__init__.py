"""A deterministic simulator: the real engine, a seeded cluster around it, and faults in every seam."""
