"""What a user hands over, as a recipe that can be fitted again on some of the records."""

from leakscope.recipes.recipe import Recipe, recipe_of

__all__ = ["Recipe", "recipe_of"]
