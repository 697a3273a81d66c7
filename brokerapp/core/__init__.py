"""The stateful broker: carries out what clients ask, by the engine's decisions."""
