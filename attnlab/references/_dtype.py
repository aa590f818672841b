"""The error for an argument of the wrong dtype."""


class WrongDtype(TypeError, ValueError):
    """A tensor has an unexpected dtype: both a `TypeError` and a `ValueError`.

    Every bad argument of this library is a `ValueError`; for a dtype many expect a
    `TypeError`, as PyTorch raises.
    """
