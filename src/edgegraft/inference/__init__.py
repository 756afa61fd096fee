"""Inference engines behind one protocol, each stating what its answers are."""

from edgegraft.inference.affordability import ExactBudget, affordable
from edgegraft.inference.ais import AnnealedLogPartition, annealed_log_partition
from edgegraft.inference.auto import AutoEngine, answering, likelihood_engine, make_engine
from edgegraft.inference.bp import BeliefPropagation
from edgegraft.inference.engine import Capabilities, InferenceEngine, Info, Marginals
from edgegraft.inference.exact import ExactEngine
from edgegraft.inference.gibbs import GibbsEngine
from edgegraft.inference.sampling import GibbsInfo, gibbs_sample
from edgegraft.inference.trw import TreeReweighted

__all__ = [
    "AnnealedLogPartition",
    "AutoEngine",
    "BeliefPropagation",
    "Capabilities",
    "ExactBudget",
    "ExactEngine",
    "GibbsEngine",
    "GibbsInfo",
    "InferenceEngine",
    "Info",
    "Marginals",
    "TreeReweighted",
    "affordable",
    "annealed_log_partition",
    "answering",
    "gibbs_sample",
    "likelihood_engine",
    "make_engine",
]
