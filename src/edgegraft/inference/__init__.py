"""Inference engines behind one protocol, each stating what its answers are."""

from edgegraft.inference.engine import Capabilities, InferenceEngine, Info, Marginals

__all__ = ["Capabilities", "InferenceEngine", "Info", "Marginals"]
