"""The papers' algorithms: arrays in, a frozen result out."""
