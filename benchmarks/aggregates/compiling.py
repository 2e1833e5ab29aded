"""How long the compiler takes for every aggregate that comes with Millstream, cold and from its cache."""
