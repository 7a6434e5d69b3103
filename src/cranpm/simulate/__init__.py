"""The embedded Europe: real coast, relief and towns; invented weather and transport."""

from cranpm.simulate.world import SavedAir, SimulationSettings, World

__all__ = ["SavedAir", "SimulationSettings", "World"]
