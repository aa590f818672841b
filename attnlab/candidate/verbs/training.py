"""The verb that runs a user's script and watches its training."""

from collections.abc import Sequence
from typing import Any

from attnlab.candidate.live_properties import Hints, live_properties
from attnlab.candidate.quick_optimizers import skip_compiler
from attnlab.candidate.registry import verb
from attnlab.candidate.session import Session
from attnlab.candidate.verbs.traces import main_of
from attnlab.records import to_json
from attnlab.training.run import Wanted, Watched, watch_script

PROPERTY_SECONDS = 8.0  # after which no further property of the model is begun


@verb
def watch_training(
    session: Session,
    file: str,
    text: str,
    path: str,
    own: dict[str, Any],
    steps: int,
    promised: Sequence[str],
    unpromised: Sequence[str],
    overfit: float = 0.0,
    retrace: bool = False,
    evaluate: Sequence[str] = (),
) -> Any:
    """The first optimizer steps of a file that runs as `python file.py` does: `log` and `trace` are
    the JSON texts of a `TrainingLog` and of the `RawTrace` of one step, `live` that of a
    `LiveReport` on the model and its first batch. One batch is learned for `overfit` seconds; to
    `retrace` is to look closely at the last step, and at nothing of the model.
    Functions to `evaluate` are called after the steps."""
    skip_compiler([text])

    def answer(seen: Watched) -> dict[str, Any]:
        told = {"log": to_json(seen.log), "trace": to_json(seen.raw) if seen.raw else ""}
        if seen.call is not None and not retrace:
            ahead = next((c for c in seen.log.losses if c.shift in (1, 2) and not c.late), None)
            why = f"{ahead.file}:{ahead.line} has the next ids as targets" if ahead else ""
            hints = Hints(
                promised=tuple(promised),
                unpromised=tuple(unpromised),
                seen=(("causal", why),) if ahead else (),
                seconds=PROPERTY_SECONDS,
            )
            live = live_properties(seen.call.module, seen.call.args, seen.call.kwargs, hints)
            told["live"] = to_json(live)
        return told

    run = main_of(session, file, text, path, own)

    wanted = Wanted(text, overfit, tuple(evaluate), retrace)

    def unstoppable(seen: Watched) -> None:
        session.answer_now(answer(seen))

    return answer(watch_script(run, steps, file, unstoppable, wanted))
