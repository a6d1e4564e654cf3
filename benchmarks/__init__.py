"""The scripts behind every figure we publish; `make bench` runs them and writes the page."""
