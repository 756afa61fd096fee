"""Data with a known true network, a bundled survey, and readers of public data."""

from edgegraft.datasets.genotypes import GenotypeData, make_genotypes
from edgegraft.datasets.public import load_debd, load_jester, load_yummly
from edgegraft.datasets.source import Dataset, load_digits, load_survey
from edgegraft.datasets.synthetic import (
    SyntheticData,
    make_chain,
    make_erdos_renyi,
    make_grid,
    make_mrf,
    make_regular,
    make_scale_free,
    make_star,
)
from edgegraft.inference.sampling import GibbsInfo, gibbs_sample

__all__ = [
    "Dataset",
    "GenotypeData",
    "GibbsInfo",
    "SyntheticData",
    "gibbs_sample",
    "load_debd",
    "load_digits",
    "load_jester",
    "load_survey",
    "load_yummly",
    "make_chain",
    "make_erdos_renyi",
    "make_genotypes",
    "make_grid",
    "make_mrf",
    "make_regular",
    "make_scale_free",
    "make_star",
]
