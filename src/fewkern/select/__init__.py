"""Feature vector selection (FVS): choose a few samples, and regression, discriminants and components on them."""
