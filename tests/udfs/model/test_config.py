"""Settings of the core."""

import msgspec
import pytest

from tests.core_config import core_config
from udfs.model.config import CoreConfig


def test_no_setting_has_a_default_of_its_own() -> None:
    fields = msgspec.structs.asdict(core_config())
    assert CoreConfig(**fields) == core_config()
    for name in fields:
        with pytest.raises(TypeError, match=name):
            CoreConfig(**{key: value for key, value in fields.items() if key != name})


def test_settings_travel_to_the_workers_as_one_frozen_value() -> None:
    config = core_config(shards=3, silence="expire")
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(config), type=CoreConfig) == config
    with pytest.raises(AttributeError):
        config.shards = 4  # type: ignore[misc]
