"""Live clusters named by the settings, and the names by which a checkpoint remembers them."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from streaming.collectors.registry import FOLLOWED, attached_clusters, check_events_topic
from streaming.settings.clusters import SECTIONS
from streaming.settings.model import load
from streaming.setup.errors import SetupError
from tests.kit.processes import free_port
from udfs.model.systems import SYSTEMS


@pytest.mark.parametrize("system", FOLLOWED)
def test_an_entry_has_its_profile_its_settings_and_its_factory(system: str) -> None:
    assert FOLLOWED[system].profile is SYSTEMS[system]
    section = load().cluster(system)
    assert isinstance(section, SECTIONS[system])
    assert getattr(section, section.address) == ""
    assert load().followed() == {}
    assert FOLLOWED[system].filters_topics == hasattr(section, "include_topics")
    assert importlib.import_module(f"streaming.collectors.{system}.factory")


def test_systems_stand_everywhere_in_one_order() -> None:
    assert list(FOLLOWED) == list(SECTIONS) == list(SYSTEMS)


def test_without_clusters_nothing_is_attached_and_no_folder_is_made(tmp_path: Path) -> None:
    assert attached_clusters(load(), tmp_path / "collected", dict) == []
    assert list(tmp_path.iterdir()) == []


def test_a_topic_of_events_is_checked_before_its_first_start_only() -> None:
    away = f"127.0.0.1:{free_port()}"
    settings = load(None, {"kafka_events.topic": "t", "kafka.bootstrap_servers": away})
    with pytest.raises(SetupError, match=f"{away}: Connection refused"):
        check_events_topic(settings, was_read=False)
    check_events_topic(settings, was_read=True)
    check_events_topic(load(), was_read=False)
