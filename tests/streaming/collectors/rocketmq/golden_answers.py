"""The recorded answers of real servers and classes. `tests.kit.rocketmq_recording` makes them."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any, Final

from streaming.collectors.rocketmq.remoting.frames import Frame, FrameReader

GOLDEN: Final = Path(__file__).resolve().parent / "golden"
VERSIONS: Final = ("4.9.7", "5.5.0")
# Every recorded answer, as `VERSION/NAME`.
NAMES: Final = tuple(sorted(f"{path.parent.name}/{path.stem}" for path in GOLDEN.glob("*/*.frame")))


def recorded_bytes(version: str, name: str) -> bytes:
    """Return a whole frame as it came."""
    return (GOLDEN / version / f"{name}.frame").read_bytes()


def recorded(version: str, name: str) -> Frame:
    """Return an answer, cut by the reader under test; `test_frames` holds that reader to the bytes."""
    (frame,) = FrameReader().feed(recorded_bytes(version, name))
    return frame


def members(version: str) -> dict[str, Any]:
    """Return the members' own reports."""
    reported: dict[str, Any] = json.loads((GOLDEN / version / "members.json").read_text())
    return reported


def wire(version: str) -> dict[str, bytes]:
    """Return the frames that RocketMQ's classes wrote, by name, without those that they could not write."""
    lines = (line.split("\t") for line in (GOLDEN / version / "wire.tsv").read_text().splitlines())
    return {name: base64.b64decode(text) for name, text in lines if not text.startswith("!")}
