"""Things that take the place of what a user's script shows and logs with, and do nothing."""

import importlib.machinery
import sys
import types
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

# Packages that only show or log: where one is not installed, a script is worth running without.
LOGGERS = frozenset(
    (
        *("wandb", "tensorboard", "tensorboardX", "mlflow", "comet_ml", "neptune", "clearml"),
        *("matplotlib", "seaborn", "plotly", "tqdm", "rich", "loguru", "termcolor", "IPython"),
    )
)


class Silent(types.ModuleType):
    """Every attribute, call and item of it is such a thing again; a progress bar is what it got."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Silent(name)

    def __call__(self, *args: Any, **_: Any) -> Any:
        if self.__name__ == "trange":
            return Bar(range(*args))
        loops = self.__name__ in BARS and args and hasattr(args[0], "__iter__")
        return Bar(args[0]) if loops else Silent(self.__name__)

    def __getitem__(self, key: object) -> Any:
        return Silent(str(key))

    def __setitem__(self, key: object, value: object) -> None:
        pass

    def __iter__(self) -> Iterator[Any]:
        return iter((Silent("first"), Silent("second")))  # fig, ax = plt.subplots()

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *error: object) -> None:
        pass


BARS = ("tqdm", "tqdm_notebook", "track")


class Bar(Silent):
    """A progress bar: it goes through what it was given."""

    def __init__(self, given: Iterable[Any]) -> None:
        super().__init__("bar")
        self.__dict__["given"] = given

    def __iter__(self) -> Iterator[Any]:
        return iter(self.__dict__["given"])

    def __len__(self) -> int:
        return len(self.__dict__["given"])


class StandIns:
    """An importer, asked last, of the packages in `LOGGERS` that are not installed."""

    def __init__(self) -> None:
        self.used: set[str] = set()

    def find_spec(
        self, name: str, _path: Sequence[str] | None = None, _target: object = None
    ) -> importlib.machinery.ModuleSpec | None:
        first = name.partition(".")[0]
        if first not in LOGGERS or (first in sys.modules and first not in self.used):
            return None
        self.used.add(first)
        return importlib.machinery.ModuleSpec(name, self, is_package=True)  # type: ignore[arg-type]

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return Silent(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        pass


STAND_INS = StandIns()


def offer_stand_ins(text: str, namespace: dict[str, Any]) -> None:
    """Let a source run that shows what it does with packages, or a notebook, that are not there."""
    if STAND_INS not in sys.meta_path:
        sys.meta_path.append(STAND_INS)
    if "get_ipython()" in text:
        for name in ("get_ipython", "display"):
            namespace.setdefault(name, Silent(name))
