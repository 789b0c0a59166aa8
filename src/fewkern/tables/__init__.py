"""Tables as they come: what their columns mean, models of them, and how far to trust these."""
