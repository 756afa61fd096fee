"""Every setting of learning and of reading tables, declared once.

From the declarations (:mod:`edgegraft.config.declare`) derive the checks, the defaults of the
estimators, the options of ``edgegraft learn``, and the JSON of checkpoints and model files. A new
setting is therefore a field here and the code that acts on it.

This package imports the standard library alone, so that ``edgegraft learn --help`` is immediate.
"""

from edgegraft.config.declare import Setting, check_settings, setting, settings_of
from edgegraft.config.learning import GraftingSettings, Plan, Settings, WeightMeaning
from edgegraft.config.reading import BinRule, ReadingOptions, TableOptions, Unseen

__all__ = [
    "BinRule",
    "GraftingSettings",
    "Plan",
    "ReadingOptions",
    "Setting",
    "Settings",
    "TableOptions",
    "Unseen",
    "WeightMeaning",
    "check_settings",
    "setting",
    "settings_of",
]
