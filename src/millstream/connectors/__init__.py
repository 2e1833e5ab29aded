"""Sources of Millstream itself: TCP ports."""
