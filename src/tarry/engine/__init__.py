"""The flow of one turn: wake, claim, resume, park."""
