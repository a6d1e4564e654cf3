"""Groups of at least k records with little spread."""
