"""How far floating point can take a layer from its real function."""
