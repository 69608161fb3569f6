"""A row of bumps in one coordinate, as close together as f needs there: for what oscillates and spikes, in linear time."""
