"""RoPE beyond the training length: how each recipe changes the frequencies.

A recipe is made once with its numbers and handed to `RotaryEmbedding(..., scaling=...)`. Its
`frequencies(w, base=..., length=...)` turns the plain w_i = base^(-2i/D), (D/2,) in float64, into
those to use; `length` is the highest position in use plus 1, a whole number or a 0-d tensor. Its
`attention_factor` multiplies rotated queries and keys, hence the scores by its square. Parameters
are named as in the `rope_parameters` of transformers, whose arithmetic these follow.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from attnlab.references._arguments import check_count


class RotaryScaling(Protocol):
    """What `RotaryEmbedding` asks of a recipe."""

    @property
    def attention_factor(self) -> float: ...

    def frequencies(self, w: Tensor, *, base: float, length: Tensor | int) -> Tensor: ...


class _KeepsScores:
    """The recipes that change nothing but frequencies."""

    @property
    def attention_factor(self) -> float:
        return 1.0


@dataclass(frozen=True)
class LinearScaling(_KeepsScores):
    """Every pair rotates `factor` times slower: positions are interpolated, w_i / factor.

    Source: "Extending Context Window of Large Language Models via Positional Interpolation" (Chen
        et al., 2023)
    Rows: B7"""

    factor: float

    def __post_init__(self) -> None:
        _check_factor(self.factor)

    def frequencies(self, w: Tensor, **_: object) -> Tensor:
        return w / self.factor


@dataclass(frozen=True)
class NTKScaling(_KeepsScores):
    """A larger base: the slowest pair slows down by `factor`, the fastest stays.

        base' = base * factor^(D / (D - 2)),  so that w'_i = w_i * factor^(-2i / (D - 2))

    (`base_rescale_factor` in x-transformers, `theta_rescale_factor` in rotary-embedding-torch.)

    Source: "NTK-Aware Scaled RoPE" (bloc97, 2023), described in "YaRN" (Peng et al., 2023), section
        3.1
    Rows: B7"""

    factor: float

    def __post_init__(self) -> None:
        _check_factor(self.factor)

    def frequencies(self, w: Tensor, **_: object) -> Tensor:
        return w * _slower(w, torch.tensor(self.factor, dtype=w.dtype, device=w.device))


@dataclass(frozen=True)
class DynamicNTKScaling(_KeepsScores):
    """NTK scaling by as much as the current length L needs, none up to the training length M.

        base' = base * (factor * L / M - (factor - 1))^(D / (D - 2))      L > M

    The frequencies change as the sequence grows: keys in a cache that were rotated at a shorter
    length do not fit newer queries. Cache keys unrotated, or fix the length beforehand.

    Source: "Dynamic NTK" (emozilla, 2023), described in "YaRN" (Peng et al., 2023), section 3.3
    Rows: B7"""

    factor: float
    max_position_embeddings: int

    def __post_init__(self) -> None:
        _check_factor(self.factor)
        check_count("max_position_embeddings", self.max_position_embeddings)

    def frequencies(self, w: Tensor, *, length: Tensor | int, **_: object) -> Tensor:
        L = torch.as_tensor(length, dtype=w.dtype, device=w.device)
        L = L.clamp(min=self.max_position_embeddings)
        return w * _slower(w, self.factor * L / self.max_position_embeddings - (self.factor - 1))


@dataclass(frozen=True)
class YaRNScaling:
    """Fast pairs stay, slow ones are interpolated, a ramp between; scores sharpen a little.

        turns_i = M w_i / (2 pi)                how often pair i turns within the training length M
        w'_i    = w_i                           turns_i above beta_fast
        w'_i    = w_i / factor                  turns_i below beta_slow
        attention_factor = 0.1 ln(factor) + 1

    The ramp is linear in i between the two pairs where those numbers of turns are reached; with
    `truncate` their indices are first rounded outwards, as in the authors' code.

    Source: "YaRN: Efficient Context Window Extension of Large Language Models" (Peng et al., 2023)
    Rows: B7"""

    factor: float
    original_max_position_embeddings: int
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    truncate: bool = True
    mscale: float = 1.0
    mscale_all_dim: float = 0.0  # DeepSeek divides by a second factor; 0 for none

    def __post_init__(self) -> None:
        _check_factor(self.factor)
        check_count("original_max_position_embeddings", self.original_max_position_embeddings)
        if not 0 < self.beta_slow <= self.beta_fast:
            raise ValueError(
                f"beta_fast={self.beta_fast}, beta_slow={self.beta_slow}: "
                "expected numbers of turns, 0 < beta_slow <= beta_fast"
            )

    @property
    def attention_factor(self) -> float:
        log = math.log(self.factor)
        return (0.1 * self.mscale * log + 1) / (0.1 * self.mscale_all_dim * log + 1)

    def frequencies(self, w: Tensor, *, base: float, **_: object) -> Tensor:
        first, last = self._pair(self.beta_fast, w, base), self._pair(self.beta_slow, w, base)
        if self.truncate:
            first, last = math.floor(first), math.ceil(last)
        first, last = max(first, 0), min(last, 2 * len(w) - 1)
        i = torch.arange(len(w), dtype=w.dtype, device=w.device)  #                     (D/2,)
        slow = ((i - first) / max(last - first, 0.001)).clamp(0, 1)  #                  0 ... 1
        return (1 - slow) * w + slow * w / self.factor

    def _pair(self, turns: float, w: Tensor, base: float) -> float:
        """The i, not whole, at which M w_i / (2 pi) = turns."""
        wanted = 2 * math.pi * turns / self.original_max_position_embeddings
        return -math.log(wanted) / math.log(base) * len(w)


@dataclass(frozen=True)
class Llama3Scaling(_KeepsScores):
    """Short waves stay, long ones are interpolated, a blend between, by turns within M.

        turns_i = M w_i / (2 pi)
        w'_i    = w_i                           turns_i above high_freq_factor
        w'_i    = w_i / factor                  turns_i below low_freq_factor
        w'_i    = (1 - s) w_i / factor + s w_i  s from 0 to 1 as turns_i goes from low to high

    Source: "The Llama 3 Herd of Models" (Dubey et al., 2024), and its released code
    Rows: B7"""

    factor: float
    original_max_position_embeddings: int
    low_freq_factor: float = 1.0
    high_freq_factor: float = 4.0

    def __post_init__(self) -> None:
        _check_factor(self.factor)
        check_count("original_max_position_embeddings", self.original_max_position_embeddings)
        if not 0 < self.low_freq_factor < self.high_freq_factor:
            raise ValueError(
                f"low_freq_factor={self.low_freq_factor}, high_freq_factor={self.high_freq_factor}:"
                " expected numbers of turns, 0 < low < high"
            )

    def frequencies(self, w: Tensor, **_: object) -> Tensor:
        turns = self.original_max_position_embeddings * w / (2 * math.pi)  #            (D/2,)
        low, high = self.low_freq_factor, self.high_freq_factor
        s = ((turns - low) / (high - low)).clamp(0, 1)
        return (1 - s) * w / self.factor + s * w


@dataclass(frozen=True)
class ProportionalScaling(_KeepsScores):
    """Only the fastest pairs rotate; the rest hold content that no distance weakens.

        w'_i = w_i / factor      i < fraction * D/2, else  0

    Unlike a `rotary_dim`, which spreads all frequencies over fewer columns.

    Source: "Round and Round We Go! What makes Rotary Positional Encodings useful?" (Barbero et al.,
        2024)
    Rows: B7"""

    fraction: float
    factor: float = 1.0

    def __post_init__(self) -> None:
        _check_factor(self.factor)
        if not 0 <= self.fraction <= 1:
            raise ValueError(f"fraction={self.fraction}: expected a part of the pairs, 0 ... 1")

    def frequencies(self, w: Tensor, **_: object) -> Tensor:
        turning = torch.arange(len(w), device=w.device) < int(self.fraction * len(w))
        return torch.where(turning, w / self.factor, 0.0)


@dataclass(frozen=True)
class LongRoPEScaling:
    """Each pair has a divisor of its own, found by search: one set up to length M, one beyond it.

        w'_i = w_i / short_factor_i      L <= M, else  w_i / long_factor_i
        attention_factor = sqrt(1 + ln(factor) / ln(M))

    The jump between the sets makes cached keys misfit, as with dynamic NTK scaling.

    Source: "LongRoPE: Extending LLM Context Window Beyond 2 Million Tokens" (Ding et al., 2024)
    Rows: B7"""

    short_factor: Sequence[float]
    long_factor: Sequence[float]
    factor: float
    original_max_position_embeddings: int

    def __post_init__(self) -> None:
        _check_factor(self.factor)
        least = 2  # ln(1) = 0 divides
        check_count(
            "original_max_position_embeddings", self.original_max_position_embeddings, least
        )

    @property
    def attention_factor(self) -> float:
        return math.sqrt(
            1 + math.log(self.factor) / math.log(self.original_max_position_embeddings)
        )

    def frequencies(self, w: Tensor, *, length: Tensor | int, **_: object) -> Tensor:
        short, long = self._divisors(self.short_factor, w), self._divisors(self.long_factor, w)
        beyond = torch.as_tensor(length, device=w.device) > self.original_max_position_embeddings
        return w / torch.where(beyond, long, short)

    def _divisors(self, factors: Sequence[float], w: Tensor) -> Tensor:
        if len(factors) != len(w):
            raise ValueError(
                f"short_factor and long_factor: {len(self.short_factor)} and "
                f"{len(self.long_factor)} numbers, expected one per pair, {len(w)}"
            )
        return torch.tensor(factors, dtype=w.dtype, device=w.device)


def _check_factor(factor: float) -> None:
    if not 1 <= factor < math.inf:
        raise ValueError(f"factor={factor}: expected how many times longer, 1 or more")


def _slower(w: Tensor, factor: Tensor) -> Tensor:
    """factor^(-2i / (D - 2)), (D/2,): 1 for the first pair, 1/factor for the last."""
    if len(w) < 2:
        raise ValueError("dim=2: expected at least 4, since NTK scaling spreads over pairs")
    return factor ** -(torch.arange(len(w), dtype=w.dtype, device=w.device) / (len(w) - 1))
