"""Shell: simulated fleets: seeded, scripted lives of consumer groups, and the truth about them."""

from streaming.simulator.fleet import Fleet
from streaming.simulator.live_writer import LiveWriter
from streaming.simulator.recording import Recording, record
from streaming.simulator.truth import Cause, ExpectedRebalance

__all__ = ["Cause", "ExpectedRebalance", "Fleet", "LiveWriter", "Recording", "record"]
