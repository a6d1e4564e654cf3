"""Distances with parameters: families, the search for the parameters that link most, and proofs.

`family` and `distances`, `choquet`, `maxitive` define the distances; `learning` searches them by
`line_search` and `maxitive_search` over the rows of `competitors`; `certificate` bounds what any
member links, by `branch_and_bound` or a `mixed_integer` programme. The public door is
`tessella.risk`.
"""
