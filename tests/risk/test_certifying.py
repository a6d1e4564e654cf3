"""The certificate: never below what any parameters reach, and tight where a grid can tell."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import Bounds, LinearConstraint, linprog, milp

from tessella.exceptions import BadOptionError, LinkageError, UnknownOptionError
from tessella.masking import RankSwapping
from tessella.risk import OWA, Choquet, WeightedMean, certify, learn, link
from tessella.risk.aligned import align_tables
from tessella.risk.learned import bounds, certificate
from tessella.risk.learned.bounds import BATCH, by_programme, constraints
from tessella.risk.learned.search import least_competitors, tried
from tests.clock import driven_clock

from .brute import links_of, standardised

ENOUGH = 1e9  # seconds: as long as it takes


def table(n, d, noise, seed):
    rng = np.random.default_rng(seed)
    original = rng.normal(size=(n, d))
    return original, original + noise * rng.normal(size=(n, d)) * rng.uniform(0.2, 2, size=d)


def links(sides, distance):
    """The links of aligned tables; they are aligned once for many distances."""
    found = link(sides, distance=distance)
    return int(((found.nearer == 0) & (found.tied == 1)).sum())


def weights_of(d, steps):
    some = np.array([one for one in product(range(steps + 1), repeat=d - 1) if sum(one) <= steps])
    return np.column_stack([some, steps - some.sum(axis=1)]) / steps


@pytest.mark.parametrize(("d", "steps", "seed"), [(2, 400, 0), (2, 400, 1), (3, 40, 2), (3, 40, 3)])
@pytest.mark.parametrize("family", ["weighted mean", "owa"])
def test_the_optimum_of_a_fine_grid(family, d, steps, seed):
    """An independent way: all weights in small steps."""
    original, masked = table(20, d, 0.8, seed)
    squares = (standardised(masked)[:, None, :] - standardised(original)[None, :, :]) ** 2
    grid = links_of(
        squares if family == "weighted mean" else np.sort(squares), weights_of(d, steps)
    )
    best = certify(original, masked, family, control=False, random_state=0)
    assert best.proved
    assert best.most == best.links >= grid.max()
    assert best.links == links(align_tables(original, masked), best.distance)
    assert best.links <= grid.max() + 1  # slivers between the points of the grid


@pytest.mark.parametrize("family", ["weighted mean", "owa"])
@pytest.mark.parametrize("few", [{"SAMPLED": 1, "FULL": 0.0}, {"SAMPLED": 3}])
def test_cells_that_begin_with_few_rows_prove_the_same(family, few, monkeypatch):
    """The optimum of all rows, though cells begin with one or a few of each record."""
    for seed in range(3):
        original, masked = table(24, 3, 0.8, seed)
        best = certify(original, masked, family, effort="quick", control=False, random_state=0)
        with monkeypatch.context() as patch:
            for name, value in {"MANY": 0, **few}.items():
                patch.setattr(bounds, name, value)
            thin = certify(original, masked, family, effort="quick", control=False, random_state=0)
        assert best.proved
        assert thin.proved
        assert thin.most == best.most


@pytest.mark.parametrize("seed", range(4))
def test_the_textbook_programme(seed):
    """An independent way: all N(N - 1) rows, one big M from bounds, HiGHS."""
    original, masked = table(14, 3, 1.0, seed)
    A, B = standardised(masked), standardised(original)
    squares = (A[:, None, :] - B[None, :, :]) ** 2
    n, d = A.shape
    M = squares.max()
    rows = []
    for i in range(n):
        for j in set(range(n)) - {i}:
            row = np.zeros(d + n)
            row[:d], row[d + i] = squares[i, j] - squares[i, i], -M
            rows.append(row)
    answer = milp(
        np.r_[np.zeros(d), -np.ones(n)],
        constraints=[
            LinearConstraint(np.array(rows), 1e-6 - M, np.inf),
            LinearConstraint(np.r_[np.ones(d), np.zeros(n)], 1, 1),
        ],
        integrality=np.r_[np.zeros(d), np.ones(n)],
        bounds=Bounds(0, 1),
    )
    best = certify(original, masked, control=False, random_state=0)
    assert best.proved
    assert best.links == round(-answer.fun)


def drawn(family, d, rng):
    """Some member: inside, on a face, near a corner."""
    w = rng.dirichlet(np.full(d, rng.choice([0.1, 1.0, 10.0])))
    w = np.where(rng.random(d) < 0.2, 0.0, w)
    w = w if w.any() else np.ones(d)
    if family == "weighted mean":
        return WeightedMean(w)
    if family == "owa":
        return OWA(w)
    measure = rng.random(1 << d) * rng.integers(0, 2, size=1 << d)
    return Choquet.neutral(d).repair(np.r_[0.0, measure[1:-1], 1.0])


@settings(max_examples=40)
@given(
    st.integers(0, 10**6),
    st.sampled_from(["weighted mean", "owa", "choquet"]),
    st.integers(1, 3),
    st.sampled_from(["normal", "integers", "groups", "near"]),
    st.sampled_from([0, 300, ENOUGH]),
)
def test_never_below_what_any_parameters_reach(seed, family, d, kind, looks):
    """Invariant, with ties, identical records, records that were not masked, and no time at all."""
    rng = np.random.default_rng(seed)
    n = 16
    original, masked = table(n, d, 0.7, seed)
    if kind == "integers":
        original = rng.integers(0, 4, size=(n, d)).astype(float)
        masked = original + rng.integers(-1, 2, size=(n, d))
    elif kind == "groups":
        masked = np.repeat(original.reshape(4, 4, d).mean(axis=1), 4, axis=0)
    elif kind == "near":
        masked = original + 1e-9 * rng.normal(size=(n, d))
        original[1] = original[0] + 1e-9
    looks = looks if kind == "normal" else min(looks, 600)
    with driven_clock():
        best = certify(
            original, masked, family, time_limit=looks, effort="quick", control=False,
            random_state=0,
        )  # fmt: skip
    assert best.links <= best.most <= n
    sides = align_tables(original, masked)
    for _ in range(60):
        assert links(sides, drawn(family, d, rng)) <= best.most
    if looks == ENOUGH:
        assert best.proved


def test_four_records_by_hand():
    """The first variable tells records 0 and 1 apart and swaps 2 and 3; the second swaps all. The
    own original of record 0 is beaten in both by none, of 2 and 3 by each other's."""
    original = np.array([[0.0, 0.0], [10.0, 1.0], [20.0, 2.0], [30.0, 3.0]])
    masked = np.array([[1.0, 1.0], [11.0, 0.0], [30.0, 3.0], [20.0, 2.0]])
    best = certify(original, masked, standardise="none", random_state=0)
    assert (best.links, best.most, best.proved, best.gap) == (2, 2, True, 0.0)
    assert "proved to be the most" in str(best)


def test_identical_masked_records_count_once():
    """By hand: two groups of two, of each at most one is linked."""
    original = np.array([[0.0, 5.0], [1.0, 0.0], [10.0, 5.0], [11.0, 0.0]])
    masked = np.array([[0.4, 2.0], [0.4, 2.0], [10.4, 2.0], [10.4, 2.0]])
    best = certify(original, masked, standardise="none", random_state=0)
    assert best.most == best.links == 2


def test_identical_originals_are_never_linked():
    original = np.array([[0.0, 5.0], [0.0, 5.0], [10.0, 5.0], [11.0, 0.0]])
    for family in ("weighted mean", "owa", "choquet", "bilinear"):
        best = certify(
            original, original, family, standardise="none", effort="quick", control=False,
            random_state=0,
        )  # fmt: skip
        assert best.most == best.links == 2


def families_are_in_order(seed, noise):
    """Invariant of the slides, where all are certified: Choquet, weighted mean, Euclid."""
    original, masked = table(16, 3, noise, seed)
    kinds = ("weighted mean", "choquet", "bilinear")
    best = {
        name: certify(original, masked, name, effort="standard", control=False, random_state=0)
        for name in kinds
    }
    assert best["weighted mean"].proved
    euclid = links(align_tables(original, masked), WeightedMean.neutral(3))
    assert best["choquet"].most >= best["weighted mean"].links >= euclid
    if best["choquet"].proved:
        assert best["choquet"].links >= best["weighted mean"].links
    assert best["bilinear"].value >= best["weighted mean"].simpler["1 / variance"]


@settings(max_examples=3)
@given(st.integers(0, 10**6), st.sampled_from([0.4, 1.0]))
def test_the_order_of_the_families(seed, noise):
    families_are_in_order(seed, noise)


@pytest.mark.slow
@pytest.mark.heavy
@settings(max_examples=40)
@given(st.integers(0, 10**6), st.sampled_from([0.4, 1.0]))
def test_the_order_of_the_families_in_many_tables(seed, noise):
    families_are_in_order(seed, noise)


@pytest.mark.parametrize("order", [None, 2])
def test_a_programme_for_more_variables(order):
    """Four variables: the bound of the programme is not below random measures, nor learned."""
    original, masked = table(18, 4, 1.0, 5)
    best = certify(
        original, masked, "choquet", order=order, time_limit=ENOUGH, effort="standard",
        control=False, random_state=0,
    )  # fmt: skip
    assert "programme" in best.method
    rng, sides = np.random.default_rng(0), align_tables(original, masked)
    for _ in range(100):
        member = Choquet.neutral(4, order=order)
        member = member.repair(member.theta + rng.normal(size=len(member.theta)) * 0.3)
        assert links(sides, member) <= best.most
    learned = learn(
        original, masked, "choquet", order=order, held_out=False, control=False, random_state=0
    )
    assert learned.links <= best.most < 18


@pytest.mark.parametrize("seed", range(5))
def test_choquet_of_two_variables_on_a_grid(seed):
    """An independent way: the two free values of the measure in steps of 1/60."""
    original, masked = table(18, 2, 0.9, seed)
    squares = (standardised(masked)[:, None, :] - standardised(original)[None, :, :]) ** 2
    least, more = squares.min(axis=2), np.ptp(squares, axis=2)
    larger = squares.argmax(axis=2)
    grid = 0
    for values in product(np.linspace(0, 1, 61), repeat=2):
        far = least + more * np.array(values)[larger]
        own = np.diag(far).copy()
        np.fill_diagonal(far, np.inf)
        grid = max(grid, int((far.min(axis=1) > own * (1 + 1e-8)).sum()))
    best = certify(original, masked, "choquet", effort="standard", control=False, random_state=0)
    assert best.proved
    assert grid <= best.links <= grid + 1  # slivers between the points of the grid
    assert best.links == links(align_tables(original, masked), best.strictest)


@pytest.mark.parametrize(("seed", "order"), [(0, 3), (1, 3), (2, 2), (3, 2)])
def test_the_programme_against_enumeration(seed, order):
    """An independent way: for every set of records, is there a measure that links all of them?"""
    original, masked = table(7, 3, 1.2, seed)
    sides = align_tables(original, masked).scaled("each")
    member = Choquet.neutral(3, order=order)
    measure, bounds = constraints(member)
    matrix, low, high = measure.A, measure.lb, measure.ub
    squares = [member.features(sides.A[i] - sides.B) for i in range(7)]
    squares = [one.toarray() if hasattr(one, "toarray") else one for one in squares]
    fixed = low == high
    known, sides_of = matrix.toarray(), (low, high)

    def possible(records):
        """Whether the least margin of these records can be above zero."""
        rows = np.vstack([np.delete(squares[i] - squares[i][i], i, axis=0) for i in records])
        free = matrix.shape[1]
        rows = np.hstack(
            [-rows, np.zeros((len(rows), free - rows.shape[1])), np.ones((len(rows), 1))]
        )
        more = np.hstack([-known[~fixed], np.zeros(((~fixed).sum(), 1))])
        even = np.hstack([known[fixed], np.zeros((fixed.sum(), 1))])
        answer = linprog(
            np.r_[np.zeros(free), -1.0],
            A_ub=np.vstack([rows, more]),
            b_ub=np.r_[np.zeros(len(rows)), -sides_of[0][~fixed]],
            A_eq=even if fixed.any() else None,
            b_eq=sides_of[0][fixed] if fixed.any() else None,
            bounds=[*zip(bounds.lb, bounds.ub), (None, 1.0)],
        )
        return answer.status == 0 and -answer.fun > 1e-7

    most = next(
        (k for k in range(7, 0, -1) if any(possible(some) for some in combinations(range(7), k))), 0
    )
    competitors = least_competitors(sides, np.arange(7))
    proof = by_programme(sides, competitors, np.arange(7), member, -1, ENOUGH)
    assert proof.most == most
    assert tried(sides, proof.member).links <= most


def plain_programme(original, masked, margin):
    """Slow and obviously right: a measure of 2^d sets, all rows, one big M, a margin."""
    A, B = standardised(masked), standardised(original)
    (n, d), full = A.shape, (1 << A.shape[1]) - 1
    rows, far = np.zeros((n, n, full + 1)), 0.0
    for i, j in product(range(n), repeat=2):
        squares, left, before = (A[i] - B[j]) ** 2, full, 0.0
        far = max(far, squares.max())
        for k in np.argsort(squares, kind="stable"):
            rows[i, j, left] += squares[k] - before
            left, before = left & ~(1 << int(k)), squares[k]
    wanted, steps = [], []
    for i, j in product(range(n), repeat=2):
        if i != j:
            linked = np.zeros(n)
            linked[i] = -(far + margin)
            wanted.append(np.r_[rows[i, j] - rows[i, i], linked])
    for one, k in product(range(full + 1), range(d)):
        if not one >> k & 1:
            step = np.zeros(full + 1 + n)
            step[[one | 1 << k, one]] = 1.0, -1.0
            steps.append(step)
    lower, upper = np.zeros(full + 1 + n), np.ones(full + 1 + n)
    upper[0], lower[full] = 0.0, 1.0
    answer = milp(
        np.r_[np.zeros(full + 1), -np.ones(n)],
        constraints=[
            LinearConstraint(np.array(wanted), -far, np.inf),
            LinearConstraint(np.array(steps), 0, np.inf),
        ],
        integrality=np.r_[np.zeros(full + 1), np.ones(n)],
        bounds=Bounds(lower, upper),
    )
    return round(-answer.fun)


CASES = [(16, seed) for seed in range(6)]
CASES += [pytest.param(30, seed, marks=pytest.mark.slow) for seed in range(6)]


@pytest.mark.parametrize(("n", "seed"), CASES)
def test_the_links_of_a_plain_programme_with_a_margin(n, seed):
    """An independent way, and a bug once met: answers lay on ties, and the loop ended there."""
    original, masked = table(n, 4, 1.0, seed)
    best = certify(
        original, masked, "choquet", time_limit=ENOUGH, effort="standard", control=False,
        random_state=0,
    )  # fmt: skip
    plain = plain_programme(original, masked, 1e-4)
    assert plain <= best.links <= best.most
    assert best.proved or plain < best.most
    assert best.links == links(align_tables(original, masked), best.strictest)
    assert best.proved == (best.ended == "")


SWAPPED = [(20, 0), pytest.param(60, 1, marks=pytest.mark.slow)]


@pytest.mark.parametrize(("n", "seed"), SWAPPED)
def test_a_programme_joins_cells_that_do_not_close(n, seed, tarragona, monkeypatch):
    """An independent way, and a bug once met: 8 of at most 10 after 20 s of cells alone."""
    monkeypatch.setattr(bounds, "STALLED", -1 if n == 20 else bounds.STALLED)
    original = tarragona[:n, :3]
    masked = RankSwapping(30, random_state=seed).fit_transform(original)
    best = certify(
        original, masked, "choquet", time_limit=ENOUGH, effort="quick", control=False,
        random_state=0,
    )  # fmt: skip
    assert "cells and a mixed-integer programme" in best.method
    assert best.proved
    strict, tied = (plain_programme(original, masked, margin) for margin in (1e-4, 0.0))
    assert strict <= best.links <= tied
    assert best.links == links(align_tables(original, masked), best.strictest)


@pytest.mark.parametrize(
    ("family", "kind", "says"),
    [
        ("choquet", "no time", "time limit"),
        ("weighted mean", "no time", "time limit"),
        ("bilinear", "normal", "no sharper bound"),
        ("maxitive", "normal", "no sharper bound"),
    ],
)
def test_an_early_end_states_why(family, kind, says):
    original, masked = table(25, 4, 1.5, 3)
    limit = 0.0 if kind == "no time" else ENOUGH
    best = certify(
        original, masked, family, time_limit=limit, effort="quick", control=False, random_state=0
    )
    assert not best.proved
    assert says in best.ended
    assert says in str(best)


@pytest.mark.parametrize("seed", range(4))
def test_records_that_can_only_tie_do_not_end_a_proof_in_silence(seed):
    """Whole numbers: records that only tie count in the bound, and the certificate states it."""
    rng = np.random.default_rng(seed)
    original = rng.integers(0, 3, size=(14, 4)).astype(float)
    masked = original + rng.integers(-1, 2, size=(14, 4))
    best = certify(
        original, masked, "choquet", time_limit=ENOUGH, effort="quick", control=False,
        random_state=0,
    )  # fmt: skip
    assert plain_programme(original, masked, 1e-4) <= best.links
    assert best.proved or "ties" in best.ended


@pytest.mark.parametrize("d", [3, 5])
def test_owa_of_a_hundred_records(d):
    original, masked = table(100, d, 0.6, d)
    best = certify(
        original, masked, "owa", time_limit=ENOUGH, effort="standard", control=False,
        random_state=0,
    )  # fmt: skip
    assert best.proved
    assert best.links == links(align_tables(original, masked), best.strictest)


def test_a_limit_is_kept_within_a_batch():
    """A hard case, each look at the clock a second: many cells are open when time is over, those of
    the batch under way as well, and a longer limit leaves no more."""
    original, masked = table(150, 6, 1.0, 0)
    most = []
    for limit in (5, 50, 100):
        with driven_clock() as clock:
            best = certify(original, masked, time_limit=limit, effort="quick", random_state=0)
        assert limit <= clock.looks <= limit + 2 * BATCH
        assert not best.proved
        assert best.links <= best.most <= 150
        assert best.gap > 0
        assert best.method in best.explain()
        most.append(best.most)
    assert most == sorted(most, reverse=True)


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"time_limit": -1}, BadOptionError, "time_limit=-1"),
        ({"time_limit": "long"}, BadOptionError, "time_limit"),
        ({"time_limit": float("nan")}, BadOptionError, "time_limit"),
        ({"family": "cosine"}, UnknownOptionError, "cosine"),
        ({"family": "choquet", "order": 4}, BadOptionError, "order=4"),
    ],
)
def test_bad_options(options, error, says):
    original, masked = table(10, 3, 1.0, 3)
    with pytest.raises(error, match=says):
        certify(original, masked, **options)


def test_bad_tables():
    with pytest.raises(LinkageError, match="one record"):
        certify(np.ones((1, 2)), np.ones((1, 2)), random_state=0)
    many = np.random.default_rng(0).normal(size=(5001, 1))
    with pytest.raises(BadOptionError, match="certificate"):
        certify(many, many, random_state=0)


def test_too_many_competitors_still_give_a_bound(monkeypatch):
    """A bug once met: 4,000 records of 13 variables were given up without looking at a cell."""
    original, masked = table(40, 9, 1.0, 1)
    monkeypatch.setattr(certificate, "MOST_NUMBERS", 0)
    monkeypatch.setattr(certificate, "FEWER", 12)
    for family in ("weighted mean", "owa"):
        with driven_clock():
            best = certify(
                original, masked, family, time_limit=100, effort="quick", control=False,
                random_state=0,
            )  # fmt: skip
        assert best.cells > 0
        rng, sides = np.random.default_rng(0), align_tables(original, masked)
        for _ in range(30):
            assert links(sides, drawn(family, 9, rng)) <= best.most
    small, moved = table(20, 3, 0.8, 2)
    few = certify(small, moved, time_limit=ENOUGH, control=False, random_state=0)
    monkeypatch.undo()
    whole = certify(small, moved, time_limit=ENOUGH, control=False, random_state=0)
    assert few.links == whole.links == whole.most <= few.most


@pytest.mark.slow
def test_census(census):
    """The first six variables of 400 records under noise of 0.1 deviations."""
    original = census[:400, :6]
    rng = np.random.default_rng(0)
    masked = original + 0.1 * original.std(axis=0) * rng.normal(size=original.shape)
    assert certify(original, masked, time_limit=ENOUGH, random_state=0).proved
