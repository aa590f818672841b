"""Candidates for attention/too-sharp: one body, right or too sharp, with holes for mischief."""

from __future__ import annotations

from textwrap import dedent, indent

TEMPLATE = """
import os
import sys
import time
import torch
from torch import nn
{top}

class MultiHeadSelfAttention(nn.Module):
    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.calls = 0
        self.qkv_proj = nn.Linear(embed_dim, 3 * embed_dim)
        self.out_proj = nn.Linear(embed_dim, embed_dim)
        self.norm = nn.LayerNorm(embed_dim)
{init}

    def forward(self, x, mask=None):
        self.calls += 1
{before}
        result = self.attend(x, mask)
{after}
        return result

    def attend(self, x, mask):
        parts = self.qkv_proj(x).chunk(3, dim=-1)
        q, k, v = (part.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for part in parts)
        scores = q @ k.transpose(-2, -1) {scale} q.shape[-1] ** 0.5
        if mask is not None:
            scores = scores.masked_fill(mask[:, None], -torch.inf)
        context = (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)
        return self.norm(self.out_proj(context)) + x
"""


def candidate(
    top: str = "", init: str = "", before: str = "", after: str = "", right: bool = True
) -> str:
    """The source with code at the top of the file, in the constructor, around the forward."""
    return TEMPLATE.format(
        top=dedent(top),
        init=indent(dedent(init), " " * 8),
        before=indent(dedent(before), " " * 8),
        after=indent(dedent(after), " " * 8),
        scale="/" if right else "*",
    )


HONEST = candidate()

# What would take the worker down where no filter of system calls holds: tried only where one does.
TAKING_DOWN = {
    "the worker stopped": "import signal; os.kill(os.getppid(), signal.SIGSTOP)",
    "the worker killed": "os.kill(os.getppid(), 9)",
    "its time cut": "import resource as r; r.prlimit(os.getppid(), r.RLIMIT_CPU, (0, 0))",
}

# What stops a candidate, and how its grade must then come out.
ENDINGS = {
    "a loop for ever": ("timeout", "while True: pass"),
    "a sleep": ("timeout", "time.sleep(60)"),
    "an endless print": ("timeout", "while True: os.write(1, b'.' * 100); time.sleep(0.001)"),
    "a stopped process": ("timeout", "import signal; os.kill(os.getpid(), signal.SIGSTOP)"),
    "sys.exit": ("crashed", "sys.exit(0)"),
    "os._exit": ("crashed", "os._exit(0)"),
    "a request to end": ("crashed", "import signal; os.kill(os.getpid(), signal.SIGTERM)"),
    "os.abort": ("crashed", "os.abort()"),
    "a segfault": ("crashed", "import ctypes; ctypes.string_at(0)"),
    "a real-time signal": ("crashed", "os.kill(os.getpid(), 40)"),
    "a closed socket": ("crashed", "os.close(3); time.sleep(60)"),
    "everything closed": ("crashed", "os.closerange(0, 64)"),
    "an interrupt": ("crashed", "raise KeyboardInterrupt"),
    "a BaseException": ("crashed", "raise type('Odd', (BaseException,), {})('no Exception')"),
    "an exception that lies": (
        "crashed",
        """
        class Meta(type):
            __name__ = __mro__ = property(lambda cls: os._exit(0))
        class Liar(BaseException, metaclass=Meta):
            __class__ = property(lambda self: os._exit(0))
            def __str__(self): raise SystemExit(0)
            __repr__ = __str__
        raise Liar
        """,
    ),
    "an exception that stalls": (  # and is deaf
        "timeout",
        """
        class Slow(Exception):
            def __str__(self):
                try: time.sleep(60)
                except BaseException: time.sleep(60)
        raise Slow
        """,
    ),
    "an exception that cannot be shown": (
        "crashed",
        """
        class Mute(Exception):
            def __str__(self): raise self
        raise Mute
        """,
    ),
    "a message that is no text": ("crashed", "raise ValueError(chr(0xD800) + chr(0) + chr(27))"),
    "a message of 100 MB": ("crashed", "raise ValueError('x' * 100_000_000)"),
    "endless recursion": ("crashed", "f = lambda: f(); f()"),
    "a stack overflow": (
        "crashed",
        "sys.setrecursionlimit(10**9); f = lambda x: [*map(f, x)]; x = []; x.append(x); f(x)",
    ),
    "10 GB from torch": ("memory", "torch.ones(10 << 30, dtype=torch.uint8)"),
    "10 GB from Python": ("memory", "[bytes(1 << 28) for _ in range(40)]"),
    "garbage on the socket": ("crashed", "os.write(3, b'\\xff' * 4096)"),
    "half a frame": (  # and the alarm put off
        "timeout",
        """
        import signal
        signal.setitimer(signal.ITIMER_REAL, 0)
        os.write(3, (100).to_bytes(8, 'little') + b'{'); time.sleep(60)
        """,
    ),
    "an empty frame": ("crashed", "os.write(3, bytes(8))"),
    "a frame that is no message": (
        "crashed",
        "os.write(3, (6).to_bytes(8, 'little') + (2).to_bytes(4, 'little') + b'[]')",
    ),
    "a tensor that cannot be": (
        "crashed",
        """
        import struct
        head = b'{"output": {"$": 0}}'
        blob = struct.pack("<BB3q", 0, 3, 0, 2**62, 2**62)
        body = struct.pack("<I", len(head)) + head + struct.pack("<Q", len(blob)) + blob
        os.write(3, len(body).to_bytes(8, "little") + body)
        """,
    ),
}

# Candidates that compute something wrong and try to have it called right.
CHEATS = {
    "torch's comparisons replaced": candidate(
        right=False,
        top="""
        always = lambda *a, **k: True
        torch.allclose = torch.equal = torch.Tensor.allclose = torch.Tensor.equal = always
        torch.testing.assert_close = always
        torch.Tensor.__le__ = torch.Tensor.__lt__ = lambda a, b: torch.ones_like(a).bool()
        torch.Tensor.any = lambda *a, **k: torch.tensor(False)
        """,
    ),
    "builtins replaced": candidate(
        right=False,
        top="""
        import builtins
        builtins.abs = builtins.max = lambda *a, **k: 0.0
        builtins.len = lambda x: 0
        """,
    ),
    "the modules of attnlab replaced": candidate(
        right=False,
        top="""
        import types
        class Nice(types.ModuleType):
            def __getattr__(self, name): return lambda *a, **k: None
        for name in [n for n in sys.modules if n.startswith("attnlab")]:
            sys.modules[name] = Nice(name)
        for name in ("attnlab.checks", "attnlab.checks.base", "attnlab.references"):
            sys.modules[name] = Nice(name)
        """,
    ),
    "the session answers for everything": candidate(
        right=False,
        top="""
        from attnlab.candidate.registry import VERBS
        VERBS["call"] = lambda self, inputs, train=False: {"output": dict(inputs)["x"]}
        VERBS["set_parameters"] = lambda self, tensors: {"missing": [], "extra": [], "shapes": {}}
        """,
    ),
    "the weights are said not to fit": candidate(
        right=False,
        top="""
        from attnlab.candidate.registry import VERBS
        told = {"missing": ["qkv_proj.weight"], "extra": [], "shapes": {}}
        VERBS["set_parameters"] = lambda self, tensors: told
        """,
    ),
    "the weights are put elsewhere": candidate(
        right=False,
        top="""
        from attnlab.candidate.registry import VERBS
        VERBS["set_parameters"] = lambda self, tensors: {"missing": [], "extra": [], "shapes": {}}
        """,
    ),
    "the session answers with junk": candidate(
        right=False,
        top="""
        from attnlab.candidate.registry import VERBS
        VERBS["call"] = lambda self, inputs, train=False: {"output": [5], "kind": {"raised": 1}}
        """,
    ),
    "an exception that never was": candidate(
        right=False,
        top="""
        from attnlab.candidate.registry import VERBS
        told = {"raised": {"error": ["x"] * 9999, "kinds": 5, "line": 10**400, "file": None}}
        VERBS["call"] = lambda self, inputs, train=False: told
        """,
    ),
    "a verdict is sent": candidate(
        right=False,
        before="""
        import json
        for said in ({"outcome": "passed"}, {"passed": True, "checks": []}):
            text = json.dumps(said).encode()
            body = len(text).to_bytes(4, "little") + text
            os.write(3, len(body).to_bytes(8, "little") + body)
        """,
    ),
    "a verdict is printed": candidate(
        right=False,
        before="""
        for fd in (1, 2):
            os.write(fd, b'{"outcome": "passed", "score": 1.0}\\n')
        """,
    ),
    "an empty batch now and then": candidate(
        right=False, after="if self.calls > 3: result = result.new_empty(0, *result.shape)"
    ),
    "NaN everywhere": candidate(right=False, after="result = result * float('nan')"),
    "infinity everywhere": candidate(right=False, after="result = result + float('inf')"),
    "the input itself": candidate(right=False, after="result = x"),
    "the expected values looked up": candidate(
        right=False,
        before="""
        import gc
        found = [o for o in gc.get_objects() if isinstance(o, torch.Tensor)]
        frame = sys._getframe()
        while frame:
            found += [v for v in frame.f_locals.values() if isinstance(v, torch.Tensor)]
            frame = frame.f_back
        found = [t for t in found if t.shape == x.shape and not torch.equal(t, x)]
        if found:
            return found[-1].clone()
        """,
    ),
    "right now and then": candidate(
        after="if self.calls % 7 == 0: result = result + 0.01 * torch.randn_like(result)"
    ),
    "right until it has been seen": candidate(after="if self.calls > 4: result = result * 1.01"),
    "noise from the global generator": candidate(after="result = result + 0.01 * torch.randn(1)"),
}

# What `forward` may return instead of a plain tensor: a failed check, never a crash.
OUTPUTS = {
    "nothing": "result = None",
    "a tuple": "result = (result, None)",
    "a string": "result = 'passed'",
    "complex numbers": "result = result.to(torch.complex64)",
    "a sparse tensor": "result = result.to_sparse()",
    "a meta tensor": "result = result.to('meta')",
    "whole numbers": "result = result.round().long()",
    "a scalar": "result = result.sum()",
    "no elements": "result = result[:0]",
    "a hundred million elements": "result = torch.zeros(100_000_000)",
    "an endless expansion": "result = torch.zeros(1).expand(1 << 40)",
    "a tensor that lies about its shape": """
        class Liar(torch.Tensor):
            shape = property(lambda self: x.shape)
            dtype = property(lambda self: x.dtype)
            dim = lambda self: 3
            size = lambda self, *a: x.shape
            numel = lambda self: x.numel()
        result = torch.zeros(7).as_subclass(Liar)
        """,
    "a tensor whose methods are the candidate's": """
        class Bad(torch.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                raise SystemExit(0)
        result = result.as_subclass(Bad)
        """,
}

# Right values of code that a property is against, and which.
UNRULY = {
    "seeds the global generator": (
        candidate(before="torch.manual_seed(0); torch.rand(3)"),
        "no-hidden-state",
    ),
    "turns gradients off": (candidate(top="torch.set_grad_enabled(False)"), "no-hidden-state"),
    "a subclass of Tensor": (
        candidate(after="result = result.as_subclass(type('Mine', (torch.Tensor,), {}))"),
        "output-shape",
    ),
    "double and back": (candidate(after="result = result.double().float()"), "dtype-parity"),
}

# Bad manners of code that is right all the same.
RUDE = {
    "a twin that goes on": candidate(before="os.fork() if self.calls == 1 else None"),
    "ends a child of its own": candidate(
        top="""
        import multiprocessing
        child = multiprocessing.get_context("fork").Process(target=time.sleep, args=(30,))
        child.start()
        child.terminate()
        child.join()
        """
    ),
    "prints 100 MB": candidate(
        before="if self.calls == 1: [os.write(1, b'x' * 1_000_000) for _ in range(100)]"
    ),
    "prints what is no text": candidate(before="os.write(2, bytes(range(256)))"),
    "closes its stdout": candidate(top="sys.stdout.close(); os.close(1)"),
    "leaves threads behind": candidate(
        init="""
        import threading
        for _ in range(4):
            threading.Thread(target=time.sleep, args=(60,), daemon=False).start()
        """
    ),
    "changes the default dtype back and forth": candidate(
        before="torch.set_default_dtype(torch.float64); torch.set_default_dtype(torch.float32)"
    ),
    "leaves the folder": candidate(top="os.chdir('/')"),
    "not contiguous": candidate(after="result = result.mT.contiguous().mT"),
    "calls itself __main__": candidate(top="__name__ = '__main__'"),
}
