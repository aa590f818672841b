"""Assertions for a user's own tests: `from attnlab.testing import assert_causal`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from attnlab.testing.assertions import PropertyFailed as PropertyFailed
    from attnlab.testing.assertions import Refused as Refused
    from attnlab.testing.assertions import assert_batch_independent as assert_batch_independent
    from attnlab.testing.assertions import assert_causal as assert_causal
    from attnlab.testing.assertions import assert_deterministic as assert_deterministic
    from attnlab.testing.assertions import assert_finite as assert_finite
    from attnlab.testing.assertions import assert_gradients_finite as assert_gradients_finite
    from attnlab.testing.assertions import assert_mask_effective as assert_mask_effective
    from attnlab.testing.assertions import assert_matches as assert_matches
    from attnlab.testing.assertions import assert_padding_invariant as assert_padding_invariant
    from attnlab.testing.assertions import (
        assert_permutation_equivariant as assert_permutation_equivariant,
    )

__all__ = [
    "PropertyFailed",
    "Refused",
    "assert_batch_independent",
    "assert_causal",
    "assert_deterministic",
    "assert_finite",
    "assert_gradients_finite",
    "assert_mask_effective",
    "assert_matches",
    "assert_padding_invariant",
    "assert_permutation_equivariant",
]


def __getattr__(name: str) -> Any:
    """The assertions load torch when the first of them is used, so that pytest starts without."""
    if name in __all__:
        from attnlab.testing import assertions

        return getattr(assertions, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
