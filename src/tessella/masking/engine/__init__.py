"""Masking that keeps rules: a plan is carried out part by part."""
