"""What the first steps of a training run show, by the name that stands beside the finding."""

# rule: (what was found, why it matters and what to look at, confidence, experiment)
TRAINING_FINDINGS: dict[str, tuple[str, str, float, str]] = {
    "gradients-left-over": (
        "Gradients of earlier steps are used again",
        "`backward` adds to `.grad`. Without `zero_grad` every step sums up all batches so far.",
        0.9,
        "Print the gradient's norm in each step: it grows without bound.",
    ),
    "no-backward": (
        "No gradient is ever made",
        "`loss.backward()` is missing, or called on something else: steps change nothing.",
        0.95,
        "Compare a weight before and after ten steps: it is the same.",
    ),
    "no-step": (
        "The optimizer never steps",
        "Gradients are made and not used.",
        0.95,
        "Compare a weight before and after ten rounds: it is the same.",
    ),
    "step-before-backward": (
        "The step comes before the gradients",
        "Each update then uses what is left of the batch before.",
        0.9,
        "Move `step()` behind `backward()`: the first step changes the weights.",
    ),
    "cleared-before-step": (
        "Gradients are cleared before they are used",
        "The order is `zero_grad`, `backward`, `step`.",
        0.95,
        "Print a gradient right before `step()`: it is None or 0.",
    ),
    "cleared-between-parts": (
        "Gradients of earlier micro-batches are cleared",
        "`zero_grad` belongs before the first micro-batch of a step, not before each.",
        0.9,
        "Compare the gradient with that of the whole batch: it is that of the last part.",
    ),
    "clip-late": (
        "Gradients are clipped when it is too late",
        "Clipping belongs between `backward()` and `step()`.",
        0.85,
        "Print the gradient's norm right before `step()`: it exceeds the limit.",
    ),
    "schedule-before-step": (
        "The schedule moves before the first step",
        "PyTorch expects `optimizer.step()` first, then `scheduler.step()`.",
        0.7,
        "Print the learning rate that the first step uses.",
    ),
    "schedule-too-often": (
        "The schedule moves more often than the optimizer",
        "With accumulation it belongs beside `optimizer.step()`, not beside `backward()`.",
        0.75,
        "Print the learning rate at each step and compare it with the plan.",
    ),
    "optimizer-made-again": (
        "The optimizer is made anew while it trains",
        "Momentum and Adam's moments begin at zero each time, and schedules lose their hold.",
        0.9,
        "Make it once, before the loop: the loss falls faster.",
    ),
    "accumulation-not-divided": (
        "Accumulated losses are not divided",
        (
            "The gradient of n micro-batches is n times that of their mean: the learning rate and "
            "the clipping limit mean something else."
        ),
        0.7,
        "Compare the gradient's norm of one large batch with that of its accumulated parts.",
    ),
    "graph-kept": (
        "Losses are kept with their graphs",
        "Each holds every activation of its step, or a chain that grows.",
        0.85,
        "Use `loss.item()`: memory stops growing.",
    ),
    "eval-while-training": (
        "The model learns in eval mode",
        "Usually an evaluation inside the loop that does not switch back.",
        0.8,
        "Print `model.training` beside the loss.",
    ),
    "train-while-evaluating": (
        "The model is evaluated in train mode",
        "Dropout and batch statistics are on: results are worse, and differ from call to call.",
        0.8,
        "Evaluate twice: the numbers differ.",
    ),
    "same-batch": (
        "Every step sees the same batch",
        "Right for a test that overfits one batch; else the loader always begins anew.",
        0.5,
        "Print the first ids of each batch.",
    ),
    "labels-not-shifted": (
        "Targets are the inputs themselves",
        (
            "A language model that is asked for the id it sees learns to copy: the loss falls to "
            "0 and what it writes repeats its input."
        ),
        0.9,
        "Print inputs and targets of one row beside each other.",
    ),
    "labels-shifted-twice": (
        "Targets are shifted twice, or the wrong way",
        "Data and loss both shift: the model learns to skip a token.",
        0.9,
        "Print inputs and targets of one row beside each other.",
    ),
    "padding-counted": (
        "Padding counts in the loss",
        "The model learns to write padding, and the mean looks better than it is.",
        0.8,
        "Compute the loss over real targets alone: it is larger.",
    ),
    "probabilities-into-loss": (
        "Probabilities go into a loss that wants logits",
        (
            "Softmax is applied twice: gradients shrink, and the loss cannot fall below that of "
            "one-hot probabilities."
        ),
        0.95,
        "Give the logits: the loss falls faster and lower.",
    ),
    "logits-into-nll": (
        "`nll_loss` gets scores that are no logarithms of probabilities",
        "The loss is then unbounded, and falls below 0.",
        0.95,
        "Apply `log_softmax` first: the first loss is about ln of the number of classes.",
    ),
    "log-probabilities-into-loss": (
        "`cross_entropy` gets logarithms of probabilities",
        "A second `log_softmax` changes nothing; it only costs time.",
        0.2,
        "Use `nll_loss`: the value stays.",
    ),
    "scores-mixed": (
        "Rows of scores are cut across the output",
        "`view` deals numbers out in the order of memory and moves no axis.",
        0.95,
        "Compare `scores[0]` with the model's output for the first position.",
    ),
    "first-loss": (
        "The loss does not begin where guessing begins",
        "A model that knows nothing gives ln of the number of classes.",
        0.35,
        "Print the spread of the first logits: it should be small.",
    ),
    "loss-not-finite": (
        "The loss is no number",
        "From then on every weight is NaN.",
        0.8,
        "Trace that step: the first row with a NaN is where it came from.",
    ),
    "loss-rises": (
        "The loss rises",
        "A wrong sign, a learning rate that is too large, or gradients that add up.",
        0.5,
        "Divide the learning rate by ten: a wrong sign still rises.",
    ),
    "no-gradient": (
        "A trained parameter gets no gradient",
        "The output does not depend on it, or the graph is cut on the way.",
        0.75,
        "After `backward()` its `.grad` is None or 0.",
    ),
    "not-in-optimizer": (
        "A parameter is in no optimizer",
        "It keeps the value it was made with.",
        0.8,
        "Compare it before and after ten steps: it is the same.",
    ),
    "learning-rate": (
        "Steps are absurdly large or small",
        "A step usually changes a matrix by about a thousandth of its size.",
        0.65,
        "Change the learning rate by a factor of ten and look at the first twenty losses.",
    ),
    "weight-decay": (
        "Weight decay eats the weights",
        "It takes its share at every step, whatever the gradient says.",
        0.8,
        "Print the norm of a weight matrix: it shrinks towards 0.",
    ),
    "frozen-moves": (
        "A frozen parameter moves",
        "`requires_grad = False` stops new gradients; old ones and decay still move it.",
        0.8,
        "Compare it before and after ten steps.",
    ),
}
