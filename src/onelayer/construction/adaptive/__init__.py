"""A row of bumps in one coordinate, as close together as f needs there: what oscillates and spikes, in time linear in its size."""
