"""Dropout that is not the reference's: twice, more often, elsewhere, shared."""

from dataclasses import replace

from trial import ATTENTION, DROPOUT, KERNEL, Case, changed

from attnlab.records import Code

SAME = replace(DROPOUT, promises=(*DROPOUT.promises, "same-dropout"))
LINE = "heads = weights @ v"


def dropped(line):
    return changed(ATTENTION, (LINE, line))


def on_output(line):
    return changed(ATTENTION, ("self.out_proj(out)", line))


WEIGHTS = dropped("heads = F.dropout(weights, 0.25, self.training) @ v")
OUTPUT = on_output("F.dropout(self.out_proj(out), 0.1, self.training)")


def case(source, right=WEIGHTS):
    return Case(source, SAME, reference=Code(file="solution.py", text=right, name="M"))


WRONG = {
    "twice": case(
        dropped("heads = F.dropout(F.dropout(weights, 0.25, self.training), 0.25, self.training)@v")
    ),
    "more often": case(dropped("heads = F.dropout(weights, 0.5, self.training) @ v")),
    "less often": case(dropped("heads = F.dropout(weights, 0.1, self.training) @ v")),
    "on the heads": case(dropped("heads = F.dropout(weights @ v, 0.25, self.training)")),
    "on the scores, before the mask": case(
        changed(
            ATTENTION,
            (
                "scores = q @ k.mT / q.shape[-1] ** 0.5",
                "scores = F.dropout(q @ k.mT / q.shape[-1] ** 0.5, 0.25, self.training)",
            ),
        )
    ),
    "one draw for the batch": case(
        dropped(
            "heads = (weights * F.dropout(torch.ones_like(weights[:1]), 0.25, self.training))@v"
        )
    ),
    "one draw for all heads": case(
        dropped(
            "heads = (weights * F.dropout(torch.ones_like(weights[:, :1]), 0.25, self.training))@v"
        )
    ),
    "one draw for all queries": case(
        dropped(
            "heads = (weights * F.dropout(torch.ones_like(weights[:, :, :1]), 0.25, self.training))"
            " @ v"
        )
    ),
    "one draw for the features": case(
        on_output("F.dropout1d(self.out_proj(out), 0.1, self.training)"), OUTPUT
    ),
    "one draw for the positions": case(
        on_output("self.out_proj(out) * F.dropout(torch.ones_like(x[:, :1]), 0.1, self.training)"),
        OUTPUT,
    ),
}
RIGHT = {
    "the same": case(WEIGHTS),
    "a submodule": case(
        changed(
            ATTENTION,
            ("self.H = num_heads", "self.H = num_heads\n        self.drop = nn.Dropout(0.25)"),
            (LINE, "heads = self.drop(weights) @ v"),
        )
    ),
    "by hand, head by head": case(
        dropped(
            "heads = torch.stack([((w * (torch.rand_like(w) >= 0.25) / 0.75) if self.training else"
            " w) @ u for w, u in zip(weights.unbind(1), v.unbind(1))], 1)"
        )
    ),
    "the kernel's": case(
        changed(KERNEL, ("mask=keep", "mask=keep, dropout_p=0.25 if self.training else 0.0"))
    ),
    "on the output": case(
        on_output(
            "self.out_proj(out) * (torch.rand_like(x) < 0.9) / 0.9 if self.training else"
            " self.out_proj(out)"
        ),
        OUTPUT,
    ),
}
