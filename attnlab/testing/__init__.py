"""Assertions for a user's own tests: `from attnlab.testing import assert_causal`."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from attnlab.errors import PropertyFailed, Refused
    from attnlab.testing.assertions import (
        assert_batch_independent,
        assert_causal,
        assert_deterministic,
        assert_finite,
        assert_gradients_correct,
        assert_gradients_finite,
        assert_mask_effective,
        assert_matches,
        assert_padding_invariant,
        assert_permutation_equivariant,
    )

__all__ = [
    "PropertyFailed",
    "Refused",
    "assert_batch_independent",
    "assert_causal",
    "assert_deterministic",
    "assert_finite",
    "assert_gradients_correct",
    "assert_gradients_finite",
    "assert_mask_effective",
    "assert_matches",
    "assert_padding_invariant",
    "assert_permutation_equivariant",
]


def __getattr__(name: str) -> Any:
    """Torch is loaded when an assertion is first used, so that pytest starts without it."""
    if name in __all__:
        from attnlab.testing import assertions

        return getattr(assertions, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
