"""tessella: statistical disclosure control of microdata."""

__version__ = "0.1.0"
