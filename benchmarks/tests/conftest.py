"""The package of the tests fixes the instructions of libraries before they are loaded."""

from tests.conftest import shared_data

__all__ = ["shared_data"]
