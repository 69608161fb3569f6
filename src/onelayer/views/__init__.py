"""Ways to look at a layer and to use it from elsewhere: nothing in the core imports them."""
