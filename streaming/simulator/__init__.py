"""Shell: simulated fleets of consumer groups, seeded and scripted, with the expected results."""

from streaming.simulator.fleet import Fleet
from streaming.simulator.live_writer import LiveWriter
from streaming.simulator.recording import Recording, record
from streaming.simulator.truth import Cause, ExpectedRebalance

__all__ = ["Cause", "ExpectedRebalance", "Fleet", "LiveWriter", "Recording", "record"]
