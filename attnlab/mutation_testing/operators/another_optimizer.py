"""Another optimizer, or one that climbs.

Right: `optimizer = torch.optim.AdamW(groups, lr=0.1)`
Wrong: `optimizer = torch.optim.Adam(groups, lr=0.1)`
"""

from attnlab.mutation_testing.operators.base import Edits, Source, called_name

OPTIMIZERS = ("AdamW", "Adam", "SGD", "NAdam")
OPTIONS = ("maximize=True", "betas=(0.9, 0.99)", "betas=(0.5, 0.999)", "eps=1e-3", "amsgrad=True")


def edits(source: Source) -> Edits:
    for call in source.calls(*OPTIMIZERS):
        for name in OPTIMIZERS[:3]:
            if name != called_name(call):
                yield source.rename(call.func, name)
        given = {keyword.arg for keyword in call.keywords}
        for option in OPTIONS:
            if option.partition("=")[0] not in given and (call.args or call.keywords):
                last = [*call.args, *call.keywords][-1]
                yield source.put(last, f"{source.text_of(last)}, {option}")
