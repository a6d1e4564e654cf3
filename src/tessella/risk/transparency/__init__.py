"""Attacks of an intruder who knows how a table was masked, and with which parameters.

For each masked record he works out the originals that it can come from, or how probable each is.
"""
