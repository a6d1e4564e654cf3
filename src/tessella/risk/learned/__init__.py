"""Distances with parameters: families, the search for the parameters that link most, and proofs.

`families`, `choquet` and `maxitive` define the distances; `learning` searches them by the lines of
`search`; `certificate` bounds what any member links, by `bounds`. The public door is
`tessella.risk`.
"""
