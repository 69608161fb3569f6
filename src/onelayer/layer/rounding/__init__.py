"""How far floating point can take a constructed layer from its real function; `proof.bisection` bounds it for any other."""
