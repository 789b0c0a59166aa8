"""The learner: a few Gaussians that are chosen, moved and sized automatically."""
