"""Random rules and random tables for them.

Numbers are small whole numbers and halves, so that sums and products are exact and equality means
the same to everybody.
"""

from __future__ import annotations

from hypothesis import strategies as st

from tessella.rules import Rule
from tessella.rules.expressions import (
    And,
    Arithmetic,
    ColumnRef,
    Compare,
    Constant,
    Flag,
    Function,
    Literals,
    Member,
    Missing,
    Negative,
    Not,
    Or,
    Sum,
    Text,
)

NUMBERS = ("x", "y", "z")
TEXTS = ("s", "t")
FLAG = "f"
WORDS = ("a", "b", "c d")

amounts = st.integers(-4, 4) | st.sampled_from([0.5, -1.5, 2.5])
numbers = st.builds(Constant, amounts)
number_columns = st.builds(ColumnRef, st.sampled_from(NUMBERS))


def _sum(parts):
    """A sum as it is read: the brackets around its first term say nothing."""
    terms, signs = [], []
    for sign, term in parts:
        if not terms and isinstance(term, Sum):
            terms, signs = [*term.terms], [*term.signs]
        else:
            terms.append(term)
            signs.append(sign if signs else 1)
    return Sum(tuple(terms), tuple(signs))


def _grow(inner):
    return st.one_of(
        st.builds(Arithmetic, st.just("*"), inner, inner),
        st.builds(_sum, st.lists(st.tuples(st.sampled_from([1, -1]), inner), min_size=2)),
        st.builds(
            lambda base, power: Arithmetic("**", base, Constant(power)), inner, st.integers(1, 3)
        ),
        st.builds(Negative, inner.filter(lambda node: not isinstance(node, Constant))),
        st.builds(lambda each: Function("abs", (each,)), inner),
        st.builds(
            lambda name, each: Function(name, tuple(each)),
            st.sampled_from(["min", "max"]),
            st.lists(inner, min_size=2, max_size=3),
        ),
    )


expressions = st.recursive(number_columns | numbers, _grow, max_leaves=4)
operators = st.sampled_from(["<", "<=", "==", "!=", ">=", ">"])


@st.composite
def chains(draw):
    column = draw(number_columns)
    rest = draw(st.lists(expressions, min_size=1, max_size=2))
    operands = draw(st.permutations([column, *rest]))
    signs = draw(st.lists(operators, min_size=len(rest), max_size=len(rest)))
    return Compare(tuple(operands), tuple(signs))


def _rows(*columns):
    return st.lists(st.tuples(*columns), min_size=1, max_size=4).map(
        lambda rows: Literals(tuple(dict.fromkeys(rows)))
    )


words = st.sampled_from(WORDS)
atoms = st.one_of(
    chains(),
    st.builds(
        lambda name, sign, word: Compare((ColumnRef(name), Text(word)), (sign,)),
        st.sampled_from(TEXTS),
        st.sampled_from(["==", "!="]),
        words,
    ),
    st.just(Compare((ColumnRef("s"), ColumnRef("t")), ("==",))),
    st.builds(
        lambda each, rows, inside: Member((each,), rows, inside),
        number_columns,
        _rows(amounts),
        st.booleans(),
    ),
    st.builds(
        lambda name, rows, inside: Member((ColumnRef(name),), rows, inside),
        st.sampled_from(TEXTS),
        _rows(words),
        st.booleans(),
    ),
    st.builds(
        lambda rows, inside: Member((ColumnRef("x"), ColumnRef("s")), rows, inside),
        _rows(st.integers(-4, 4), words),
        st.booleans(),
    ),
    st.builds(Missing, st.sampled_from([*NUMBERS, *TEXTS]), st.booleans()),
    st.just(ColumnRef(FLAG)),
    st.builds(lambda value: Compare((ColumnRef(FLAG), Flag(value)), ("==",)), st.booleans()),
)
truths = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.builds(Not, inner),
        st.builds(lambda each: And(tuple(each)), st.lists(inner, min_size=2, max_size=3)),
        st.builds(lambda each: Or(tuple(each)), st.lists(inner, min_size=2, max_size=3)),
    ),
    max_leaves=4,
)
rules = st.builds(
    lambda body, condition: Rule(body=body, condition=condition, name="R1"),
    truths,
    st.none() | truths,
)

_cells = {
    **{name: st.integers(-4, 4) | st.sampled_from([0.5, 1.5]) for name in NUMBERS},
    **dict.fromkeys(TEXTS, words),
    FLAG: st.booleans(),
}
complete_records = st.fixed_dictionaries(_cells)
records = st.fixed_dictionaries({name: st.none() | cell for name, cell in _cells.items()})
