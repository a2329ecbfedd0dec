"""Errors that cross a seam: their reasons, and their remedies."""

import pytest

from udfs.model.errors import InvariantError, MonitorError, StateDamagedError, StateVersionError, StrategyError


def test_a_strategys_error_has_a_code_beside_its_sentence() -> None:
    error = StrategyError("no_members", "nobody is there")
    assert (error.code, error.message, str(error)) == ("no_members", "nobody is there", "nobody is there")
    assert isinstance(error, MonitorError)


def test_an_error_of_the_state_names_checkpoint_cluster_and_shard() -> None:
    error = StateVersionError("version 9 is newer than 8").at("/data/c p", "east", 3)
    assert str(error) == "checkpoint /data/c p, cluster 'east', shard 3: version 9 is newer than 8"
    assert type(error) is StateVersionError


def test_a_damaged_state_has_a_command_as_its_remedy_that_a_shell_understands() -> None:
    error = StateDamagedError("its checksum differs").at("/data/c p", "east", 3)
    assert type(error) is StateDamagedError
    assert str(error).startswith(
        "checkpoint /data/c p, cluster 'east', shard 3: its checksum differs. It was not used."
    )
    assert "`rebalance-monitor state rollback --checkpoint '/data/c p'`" in str(error)
    # Only where it is known whose state it is.
    assert str(StateDamagedError("its checksum differs")) == "its checksum differs"


def test_a_broken_invariant_names_the_place_what_was_expected_and_what_was_there() -> None:
    with pytest.raises(MonitorError, match="group g: expected 1, got 'x'"):
        raise InvariantError("group g", 1, "x")
