"""Experiments that know no audit: simulation, retraining, influence and memorisation."""
