"""What is proved about a layer, and how: certificates and the bounds they are made of."""
