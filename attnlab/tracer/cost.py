"""What a traced call costs, by module and in all, with formulas in the symbols of its sizes."""

from collections.abc import Sequence

from attnlab.records import Trace
from attnlab.records.cost import Cost, CostReport, ModuleCost
from attnlab.sizes import Sizes, with_head_dim
from attnlab.tracer.counted_run import Chosen, Run, Shape
from attnlab.tracer.formulas import (
    LENGTHS,
    Formula,
    Key,
    Part,
    Solver,
    evaluate,
    format_formula,
    total,
)

TITLES = {"parameters": "parameters", "weights": "weights", "buffers": "buffers", "flops": "FLOPs"}
TITLES |= {"pairs": "S x S", "cache": "KV cache", "positions": "positions"}
PLAIN = ("parameters", "flops")  # numbers that are not of bytes


class Costs:
    """Runs of one module at several sizes, and the formulas that follow from them.

    `fitted` are what formulas are solved from; each must give exactly what was counted in the runs
    of `proof`, too, or there is none. `without` says why nothing would keep keys and values."""

    def __init__(self, fitted: Sequence[Run], proof: Sequence[Run] = (), without: str = "") -> None:
        self.fitted, self.without = fitted, without
        self.solver = Solver([run.sizes for run in fitted])
        squares = fitted[0].squares
        pairs = [p for p in self._parts("pairs") if self._is_of_pairs(p, squares)]
        self.chosen: Chosen = {(part.key, part.place) for part in pairs}
        self.runs: list[Run] = []
        for run in (*fitted, *proof):
            self.prove(run)

    def prove(self, run: Run) -> None:
        """Have the formulas give what was counted in this run, too."""
        run.among(self.chosen)
        if self.without:
            run.items["cache"] = []
        self.runs.append(run)

    def _parts(self, kind: str, module: str | None = None) -> list[Part]:
        return self.solver.parts([run.of_module(kind, module) for run in self.fitted])

    def _is_of_pairs(self, part: Part, squares: set[Key]) -> bool:
        """Whether a tensor grows with the square of a length; what no run tells, by its axes."""
        if part.formula is None or not set(LENGTHS) & self.solver.alone.keys():
            return part.key in squares
        lengths = (sum(symbol in LENGTHS for symbol in key) for key in part.formula)
        return max(lengths, default=0) > 1

    def formula(self, kind: str, module: str | None = None) -> Formula | None:
        """The formula of one kind of cost, of all modules or of one group."""
        if not self.solver.alone:
            return None
        whole = [run.count(kind, module) for run in self.fitted]
        sums = total(part.formula for part in self._parts(kind, module))
        for found in (sums, self.solver.solve(whole)):
            if found is not None and all(
                evaluate(found, run.sizes) == run.count(kind, module) for run in self.runs
            ):
                return found
        return None

    def report(self, run: Run | None, sizes: Sizes) -> CostReport:
        """The costs at sizes as they were counted in a run there; without one, by the formulas."""
        shown = run or self.fitted[0]
        full = with_head_dim(sizes)
        formulas = {kind: self.formula(kind) for kind in TITLES}
        notes = self._notes(shown, formulas)
        return CostReport(
            sizes=sizes,
            costs=tuple(
                Cost(
                    id=kind,
                    title=title,
                    value=_value(run, kind, formulas[kind], full),
                    unit="" if kind in PLAIN else "bytes",
                    formula=format_formula(formulas[kind] or {}),
                    note=notes.get(kind, ""),
                )
                for kind, title in TITLES.items()
            ),
            modules=tuple(self._module(name, shown, run, full) for name in shown.modules),
        )

    def _module(self, name: str, shown: Run, run: Run | None, sizes: Sizes) -> ModuleCost:
        kinds = ("parameters", "weights", "buffers", "flops")
        formulas = {kind: self.formula(kind, name) for kind in kinds}
        found = {kind: _value(run, kind, formulas[kind], sizes, name) for kind in kinds}
        size = [found["weights"], found["buffers"]]
        return ModuleCost(
            name=name,
            count=len(shown.modules[name]),
            parameters=found["parameters"],
            bytes=None if None in size else sum(n or 0 for n in size),
            flops=found["flops"],
            formula=format_formula(formulas["flops"] or {}),
            tied=", ".join(dict.fromkeys(shown.tied(name))),
        )

    def _notes(self, run: Run, formulas: dict[str, Formula | None]) -> dict[str, str]:
        count = len(run.items["pairs"])
        fused = sum(site.fused for site in run.sites)
        found = {
            "pairs": f"in {count} tensor{'s'[: count != 1]}, not all alive at once"
            if count
            else "",
            "cache": self.without or self._by_token(run, formulas["cache"]),
            "positions": "reads x and the table, writes the sum"
            if run.items["positions"]
            else "no addition of a table to x was seen",
        }
        if fused and not count:
            found["pairs"] = "kept by none: " + (
                "it is fused" if fused == 1 else f"all {fused} are fused"
            )
        return found

    def _by_token(self, run: Run, formula: Formula | None) -> str:
        """What one more position of one sample takes, where every part grows with positions."""
        sites = len(run.sites)
        if not sites:
            return "no attention was seen"
        lengths = {s for key in formula or {} for s in key if s in LENGTHS}
        once = all(sum(s in LENGTHS for s in key) == 1 and "B" in key for key in formula or {})
        if len(lengths) != 1 or not once:
            return ""
        tokens = run.sizes["B"] * run.sizes[lengths.pop()]
        each = run.count("cache") // tokens
        return f"{each:,} bytes a token, in {sites} attention{'s'[: sites != 1]}"


def _value(
    run: Run | None, kind: str, formula: Formula | None, sizes: Sizes, module: str | None = None
) -> int | None:
    if run is not None:
        return run.count(kind, module)
    return None if formula is None else int(evaluate(formula, sizes))


def cost_of(trace: Trace, sizes: Sizes | None = None, inputs: Sequence[Shape] = ()) -> CostReport:
    """The costs of one run as they were counted; one run gives no formulas."""
    run = Run(trace, sizes or trace.sizes, inputs)
    return Costs([run]).report(run, trace.sizes)
