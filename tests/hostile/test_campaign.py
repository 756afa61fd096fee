"""Short forms of the attacks of the campaign that need no other process."""

from __future__ import annotations

import pytest

from tests.hostile import campaign

SHORT = {
    "model-files": 60,
    "packed-tables": 60,
    "stores": 60,
    "checkpoints": 20,
    "bombs": 0,
    "genotypes": 12,
    "threads-and-forks": 1,
}


@pytest.mark.parametrize("name", SHORT)
def test_nothing_is_lost(name, tmp_path):
    found = campaign.ATTACKS[name][1](tmp_path, SHORT[name])
    assert found.tried
    assert found.lost == 0
