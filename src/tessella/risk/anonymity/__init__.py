"""Anonymity as it is in a table: counted in what is released, whatever the masking promised.

`keys` reads the quasi-identifiers and counts who agrees with whom, for all measures here.
"""
