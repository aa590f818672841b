"""attnlab: practise and debug attention and positional-encoding code in PyTorch."""

__version__ = "0.1.0"
