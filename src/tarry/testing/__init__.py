"""Public tools for tests: a clock to step, faults to inject, histories to check, the suite for stores."""
