"""The simulation of many replicas: what it rests on holds at its edges."""

import pytest
from bench.replicas.simulation import Costs, Simulation, most_changes

COSTS = Costs(transaction=0.005, entry=0.0005, notice=0.003, follow=0.0005, read=0.0003, change=0.001)


def test_a_replica_that_is_alone_never_runs_a_change_again() -> None:
    outcome = Simulation(COSTS, 1, 100, reading=True).run(10)
    assert (outcome.reruns, outcome.refused, outcome.follow) == (0, 0, 0)
    assert outcome.kept == pytest.approx(1000, rel=0.2)


def test_every_change_that_came_is_kept_or_refused_however_many_replicas_there_are() -> None:
    kept = {count: Simulation(COSTS, count, 30, reading=False).run(10) for count in (1, 2, 10)}
    assert all(outcome.kept + outcome.refused > 200 for outcome in kept.values())
    assert kept[1].reruns < kept[2].reruns < kept[10].reruns


def test_a_change_takes_as_long_as_its_transaction_where_nobody_is_in_the_way() -> None:
    outcome = Simulation(COSTS, 10, 0.5, reading=False).run(60)
    assert outcome.p50 == pytest.approx(COSTS.change + COSTS.transaction + COSTS.entry)
    assert outcome.head < 0.01


def test_the_records_of_reads_alone_fill_the_head_of_a_hundred_replicas() -> None:
    few, many = (Simulation(COSTS, count, 0.5, reading=True).run(5).head for count in (2, 100))
    assert few == pytest.approx(2 * 20 * COSTS.transaction, rel=0.1)
    assert many > 0.9


def test_more_replicas_take_fewer_changes() -> None:
    one, ten = (most_changes(COSTS, count, reading=False, seconds=5) for count in (1, 10))
    assert one.kept > ten.kept
    assert ten.p99 <= 0.5


def test_it_says_the_same_each_time() -> None:
    assert Simulation(COSTS, 5, 50, reading=True).run(3) == Simulation(COSTS, 5, 50, reading=True).run(3)
