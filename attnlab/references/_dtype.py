"""The error for an argument of the wrong dtype."""


class WrongDtype(TypeError, ValueError):
    """A tensor of another dtype than expected: a wrong type to Python, a wrong value to a caller.

    Every bad argument of this library is a `ValueError`; for a dtype many would look for a
    `TypeError`, as PyTorch raises it, so this is both.
    """
