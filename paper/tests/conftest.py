"""The package of the tests fixes the instructions of libraries before they are loaded."""

import tests  # noqa: F401
