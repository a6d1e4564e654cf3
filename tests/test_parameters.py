"""Arguments are checked against what is declared for them (by hand)."""

from __future__ import annotations

import numpy as np
import pytest

import tessella
import tessella.exceptions
from tessella._lazy import on_first_use
from tessella._parameters import (
    EFFORT,
    FLAG,
    NONE,
    SEED,
    Instance,
    Number,
    OneOf,
    Whole,
    check,
    parameters,
)
from tessella.exceptions import BadOptionError, UnknownOptionError


@pytest.mark.parametrize(
    ("constraint", "accepted", "refused"),
    [
        (Whole(2), [2, np.int64(7)], [1, 2.0, True, np.True_, "2", None]),
        (Whole(0, 3), [0, 3], [-1, 4]),
        (Number(above=0, most=1), [1, 0.5, np.float32(0.1)], [0, 1.1, np.nan, np.inf, True, "1"]),
        (Number(least=0, below=1), [0, 0.5], [-0.1, 1]),
        (OneOf(("mean", "median")), ["mean"], ["mode", None, 1]),
        (EFFORT, ["quick", "standard", "thorough"], ["fast", 1]),
        (FLAG, [True, np.False_], [0, 1, "yes", None]),
        (NONE, [None], [0, False]),
        (SEED, [None, 0, np.int64(5), np.random.RandomState(0)], [-1, 0.5, True, "0"]),
        (Instance(dict, "a mapping"), [{}], [[], None]),
    ],
)
def test_constraints(constraint, accepted, refused):
    assert all(constraint.accepts(value) for value in accepted)
    assert not any(constraint.accepts(value) for value in refused)


def test_the_error_names_what_is_expected():
    with pytest.raises(BadOptionError, match=r"size=0 .* at least 1 or None"):
        check({"size": [Whole(1), NONE]}, {"size": 0})
    with pytest.raises(UnknownOptionError, match="quick"):
        check({"effort": [EFFORT]}, {"effort": "quik"})


def test_a_decorated_function_checks_and_names_what_was_renamed():
    @parameters({"size": "k"}, k=[Whole(2)])
    def group(table, *, k=3):
        return table, k

    assert group(1) == (1, 3)
    assert group(1, k=5) == (1, 5)
    with pytest.raises(BadOptionError, match="k=1"):
        group(1, k=1)
    with pytest.raises(TypeError, match="'size': it is now called 'k'"):
        group(1, size=4)
    with pytest.raises(TypeError, match="unexpected"):
        group(1, sise=4)


def test_names_that_are_gone_say_the_new_one():
    with pytest.raises(AttributeError, match="BadOptionError"):
        _ = tessella.exceptions.OutOfRangeError
    load, _ = on_first_use("tessella", renamed={"old": "tessella.new"})
    with pytest.raises(AttributeError, match=r"tessella\.old is gone: use tessella\.new"):
        load("old")


def test_arguments_of_maskers_and_steps_that_have_another_name():
    with pytest.raises(TypeError, match="'method': it is now called 'grouping'"):
        tessella.Microaggregation(method="mdav")
    with pytest.raises(TypeError, match="'missing': it is now called 'on_missing'"):
        tessella.protect(np.eye(4), k=2, missing="error")
    with pytest.raises(BadOptionError, match="'amount': its name now"):
        tessella.Study(np.eye(4)).do("noise", scale=0.1)
