"""Protocol of judges: what admission and dismissal rely on, of the library's and of a skeleton."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from edgegraft.conditional.admission import admit, dismiss
from edgegraft.conditional.judge import Judge
from edgegraft.grafting.pair_rules import PairRules
from edgegraft.learn.cut import Cut
from tests.judge_cases import network_of, rows_of
from tests.protocol.skeletons import skeleton

N = 5
PAIRS = list(combinations(range(N), 2))
CHAIN = {(i, i + 1) for i in range(N - 1)}
CUT = Cut(0.001, True, PairRules(N, np.empty((0, 2), np.int64)))


def chain_codes():
    rng = np.random.default_rng(0)
    columns = [rng.integers(0, 2, 2000)]
    for _ in range(N - 1):
        columns.append(columns[-1] ^ (rng.random(2000) < 0.2))
    return np.stack(columns, axis=1)


JUDGES = {
    "ratios": lambda codes: Judge(rows_of(codes)),
    "with a level": lambda codes: Judge(rows_of(codes), CUT.decides),
    "skeleton": lambda codes: skeleton("judge").PartialCorrelation(codes),
}
every_judge = pytest.mark.parametrize("make", JUDGES.values(), ids=JUDGES)


@every_judge
def test_a_verdict_is_a_p_value_of_the_pair_alone(make):
    judge, network = make(chain_codes()), network_of(N, sorted(CHAIN))
    verdicts = judge.ask(network, PAIRS)
    assert len(verdicts) == len(PAIRS)
    assert network.edges == CHAIN
    for verdict in verdicts:
        assert 0.0 <= verdict.p_value <= 1.0
        assert verdict.statistic >= 0.0
        assert verdict.dof >= 1
    for pair, verdict in zip(PAIRS, verdicts, strict=True):
        asked = make(chain_codes()).ask(network, [pair])[0]
        assert (asked.p_value <= 0.001) == (verdict.p_value <= 0.001) == (pair in CHAIN)
    assert judge.ask(network, PAIRS) == verdicts


@every_judge
def test_nobody_is_asked_nothing(make):
    assert make(chain_codes()).ask(network_of(N, []), []) == []


@every_judge
def test_a_column_without_information_is_no_neighbour(make):
    codes = chain_codes()
    codes[:, 4] = 0
    verdict = make(codes).ask(network_of(N, []), [(3, 4)])[0]
    assert verdict.p_value == 1.0


@every_judge
def test_all_pairs_are_dismissed_but_those_of_the_chain(make):
    network = network_of(N, PAIRS)
    dismiss(network, make(chain_codes()), CUT)
    assert network.edges == CHAIN


@every_judge
def test_the_pairs_of_the_chain_are_admitted(make):
    judge, network = make(chain_codes()), network_of(N, [])
    admit(network, PAIRS, judge, CUT)
    dismiss(network, judge, CUT)
    assert network.edges == CHAIN
