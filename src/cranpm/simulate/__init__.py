"""The built-in synthetic world: real coast, relief and towns; invented weather and transport."""

from cranpm.simulate.world import SIMULATOR_VERSION, SavedAir, SimulationSettings, World

__all__ = ["SIMULATOR_VERSION", "SavedAir", "SimulationSettings", "World"]
