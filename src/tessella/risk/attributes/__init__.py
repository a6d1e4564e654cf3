"""Attribute disclosure: what a release tells of a value, whether or not anyone is identified.

`intervals`: how near released values are; `homogeneity`: what equal keys give away; `prediction`:
what a model learns from the release. The public door is `tessella.risk`.
"""
