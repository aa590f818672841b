"""What takes the place of packages that only show and log."""

import sys

from attnlab.candidate.stand_ins import STAND_INS, offer_stand_ins


def test_a_logger_that_is_not_installed_does_nothing():
    """Calls, attributes, items and contexts of it work; a progress bar still loops."""
    offer_stand_ins("", {})
    try:
        space: dict = {}
        exec(
            "import wandb, neptune.utils as u\nfrom clearml import Task\n"
            "wandb.init(project='x').log({'a': 1})\n"
            "with wandb.run as run: run['a'] = 2\n"
            "fig, ax = wandb.plots()\n"
            "from comet_ml import tqdm, trange\n"
            "bar = tqdm([1, 2]); bar.set_description('x'); seen = list(bar) + list(trange(2))",
            space,
        )
        assert space["seen"] == [1, 2, 0, 1]
    finally:
        sys.meta_path.remove(STAND_INS)
        for name in [n for n in sys.modules if n.partition(".")[0] in STAND_INS.used]:
            del sys.modules[name]


def test_only_known_loggers_are_replaced():
    """A misspelt package is still an error."""
    assert STAND_INS.find_spec("torchvison") is None


def test_an_exported_notebook_gets_ipython():
    """`get_ipython()` and `display(...)` do nothing; other files have no such names."""
    told, plain = {}, {}
    offer_stand_ins("get_ipython().system('ls')", told)
    offer_stand_ins("print(1)", plain)
    sys.meta_path.remove(STAND_INS)
    assert told["get_ipython"]().run_line_magic("matplotlib", "inline") is not None
    assert told["display"](told) is not None
    assert plain == {}
