"""The check stage of a user's own module: the properties that it seems to promise."""

from attnlab.candidate.host import Died, Host, checked_answer
from attnlab.grading.trace_stage import LONGEST, SEED, build_example, surroundings
from attnlab.probe.inputs import draw
from attnlab.probe.inputs.draw import Dice
from attnlab.records import Job, LiveReport, from_json
from attnlab.sizes import with_head_dim


def find_properties(job: Job, host: Host) -> LiveReport:
    """What the job's example, or the demo of its file, shows of the module."""
    said = {"promised": list(job.promised), "unpromised": list(job.unpromised)}
    contract = job.contract
    if contract is None:
        answer = host.ask("look_at_demo", **surroundings(job), **said)
    else:
        sizes = with_head_dim(contract.sizes)
        build_example(job, host, contract, sizes)
        inputs = draw.inputs(contract, sizes, Dice(SEED), contract.example_mask)
        answer = host.ask("look_at_properties", inputs=list(inputs.items()), **said)
    text = str(checked_answer(answer).get("report", ""))
    try:
        return from_json(LiveReport, text[:LONGEST])
    except (TypeError, ValueError) as error:
        raise Died("crashed", "answered with no properties") from error
