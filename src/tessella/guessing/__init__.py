"""What columns may be, guessed from names, labels and values; every guess gives its reason."""
