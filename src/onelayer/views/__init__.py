"""Views: what is made for the eye, and for other libraries. Core does not know of them."""
