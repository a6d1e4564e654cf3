"""Slow, obviously right versions, to compare with: `from tests.reference.mdav import ...`."""
