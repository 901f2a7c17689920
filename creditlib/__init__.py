"""Multi-reward RL post-training of language models with token-level credit.

``creditlib.run`` does from Python what ``python -m creditlib.train`` does in a shell. Importing this package
loads no torch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from creditlib.types import CreditlibError

if TYPE_CHECKING:
    from creditlib.config import RunConfig
    from creditlib.types import Task

__version__ = "0.1.0"
__all__ = ["CreditlibError", "__version__", "run"]


def run(
    config: RunConfig | Sequence[str] | Mapping[str, Any] = (), *, task: Task | None = None
) -> dict[str, Any]:
    """Train a policy, and return the run's summary.

    Args:
        config: Settings as on the command line (``["task=text2sql", "trainer.steps=5"]``), or as a mapping
            (``{"task": "text2sql", "trainer.steps": 5}``), or a composed configuration.
        task: A task of your own, ready made; then ``config`` needs to choose none.

    Raises:
        CreditlibError: Something in the settings, data or model that you can mend; the message says how.
    """
    from creditlib.cli import compose
    from creditlib.config import RunConfig
    from creditlib.parts import check_task
    from creditlib.train import train

    if isinstance(task, str):
        raise CreditlibError(
            f"task={task!r}: expected a task of your own, ready made; choose one by name in the settings, as "
            f'in run({{"task": {task!r}}})'
        )
    if task is not None:
        check_task(task, f"task={task!r}")
    return train(config if isinstance(config, RunConfig) else compose(config, task), task)
