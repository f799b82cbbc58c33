"""Public tools for tests: clocks to step, faults to inject, histories to check, the conformance suite for stores."""
