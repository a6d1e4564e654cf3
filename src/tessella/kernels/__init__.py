"""Compiled inner loops: arrays in, arrays out; no checks, no frames.

A kernel trusts its caller. Every array is C-ordered float64 or int64 unless it says otherwise.
"""
