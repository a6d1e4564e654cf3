"""Every grouping is a scikit-learn clusterer, by scikit-learn's own checks."""

from __future__ import annotations

import pytest
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_clustering, parametrize_with_checks

from tessella import grouping, masking
from tessella.grouping import Grouping, RepOrdMic, Search
from tests.scikit import holds_but_for

GROUPINGS = [
    thing
    for name in grouping.__all__
    if isinstance(thing := getattr(grouping, name), type)
    and issubclass(thing, Grouping)
    and thing is not Grouping
]
# scikit-learn's checks hand over tables of several columns, and these take one. Their own tests
# run the checks on a version that looks at the first column.
OF_ONE_COLUMN = [make for make in GROUPINGS if not get_tags(make()).input_tags.two_d_array]


CHECKED = [make for make in GROUPINGS if make not in OF_ONE_COLUMN]
# The contract does not depend on how much work is done.
LITTLE_WORK = {Search: {"effort": "quick"}, RepOrdMic: {"max_clusters": 20}}


def quick(make, **options):
    return make(**LITTLE_WORK.get(make, {}), **options)


def expected_failures(estimator: Grouping) -> dict[str, str]:
    return {
        "check_sample_weight_equivalence_on_dense_data": (
            "k counts records, not weights: a record of weight 2 is one respondent, two equal "
            "records are two"
        ),
        "check_clustering": (
            "it wants three blobs of 16 and 17 records found again, and groups of 3 are smaller "
            "parts of them; with k=16 it passes, see below"
        ),
    }


def test_all_groupings_are_checked():
    assert len(GROUPINGS) == 9
    assert [grouping.UnivariateOptimal] == OF_ONE_COLUMN


@parametrize_with_checks([quick(make) for make in CHECKED])
def test_scikit_learn(estimator, check):
    holds_but_for(estimator, check, expected_failures(estimator))


@pytest.mark.parametrize("make", CHECKED)
@pytest.mark.parametrize("readonly_memmap", [False, True])
def test_scikit_learn_finds_its_blobs_with_k_of_the_smallest(make, readonly_memmap):
    check_clustering(make.__name__, quick(make, k=16), readonly_memmap=readonly_memmap)


OF_NUMBERS = [
    masking.FuzzyMicroaggregation(3), masking.IndividualRanking(3), masking.Microaggregation(3),
    masking.NoiseAddition(0.1), masking.OverlappingMicroaggregation(3, effort="quick"),
    masking.RankSwapping(50), masking.Rounding(5), masking.Shuffling(),
    masking.TopBottomCoding(),
]  # fmt: skip


def expected_failures_of_maskers(estimator):
    """List what maskers refuse in words of their own, or rightly do not do."""
    ours = "refused, in our words: what to give instead"
    expected = {
        "check_complex_data": ours,
        "check_dtype_object": "an array of objects is refused: a frame tells numbers from texts",
        "check_estimators_empty_data_messages": ours,
    }
    if isinstance(estimator, masking.NoiseAddition | masking.RankSwapping | masking.Shuffling):
        expected["check_fit2d_1sample"] = "one record alone has no noise or ranks; " + ours
    if isinstance(estimator, masking.IndividualRanking):
        expected["check_estimators_pickle"] = "fewer than k records lack a cell: refused"
    return expected


@parametrize_with_checks(OF_NUMBERS)
def test_maskers_by_scikit_learn(estimator, check):
    holds_but_for(estimator, check, expected_failures_of_maskers(estimator))


def test_all_maskers_are_checked():
    """Five are not: they mask categories, and scikit-learn's checks hand over numbers."""
    there = {name for name in masking.__all__ if hasattr(getattr(masking, name), "fit_transform")}
    assert there - {type(one).__name__ for one in OF_NUMBERS} == {
        "LocalRecoding", "LocalSuppression", "PRAM", "Recoding", "RecordSwapping",
    }  # fmt: skip
