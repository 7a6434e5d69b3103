"""Weights on disk: safe folders in, safe folders out."""

from cranpm.weights.card import Card, card_for
from cranpm.weights.checkpoint import import_weights
from cranpm.weights.folder import Weights, find_weights, load_weights, save_weights

__all__ = ["Card", "Weights", "card_for", "find_weights", "import_weights", "load_weights", "save_weights"]
