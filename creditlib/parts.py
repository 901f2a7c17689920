"""The open sections of a configuration: is the named part there, does it take these settings, is it ours?

`task`, `pairs`, `credit`, `advantage` and `loss` take the fields of whatever class they name as their
settings. `check_parts` looks at the classes alone, before data or a model is loaded; `build_task` makes the
task.
"""

from __future__ import annotations

import dataclasses
import importlib
import importlib.metadata
import importlib.util
import inspect
import json
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from creditlib import registry
from creditlib.config import Named, RunConfig, explain, nearest
from creditlib.types import AdvantageRule, CreditlibError, CreditStrategy, Task

OUR_PACKAGES = ("tasks", "verifiers")
# What a run can give a credit strategy (`creditlib.types.CreditStrategy.needs`): any run, and one with a
# reward model.
PROVIDED = frozenset({"policy", "hidden", "contexts"})
FROM_REWARD_MODELS = frozenset({"reward_gradients", "reward_values", "reward_null"})
PROTOCOLS: dict[str, type] = {"credit": CreditStrategy, "advantage": AdvantageRule}


def check_parts(config: BaseModel, *, task: bool = True) -> None:
    """Check the open sections of `config` against the classes that they name (the task's unless it is made
    already).

    Raises:
        CreditlibError: An unknown part, an unknown setting, a setting of the wrong type or outside its
            bounds, a part that lacks something of its protocol; all of them.
    """
    problems = []
    for group, section in config:
        try:
            if isinstance(section, Named):
                part = registry.build(group, section.name, **section.hyperparameters)
                if missing := _lacking(part, PROTOCOLS.get(group, object)):
                    raise CreditlibError(
                        f"{group}={section.name}: {type(part).__qualname__} lacks {', '.join(missing)} "
                        f"(creditlib.types.{PROTOCOLS[group].__name__} says what a part of this group has)"
                    )
                if isinstance(config, RunConfig) and group == "credit":
                    check_needs(part, section.name, reward_model=bool(config.reward_model))
            elif group == "pairs" or (group == "task" and task):
                _check_settings(find_class(section["_target_"], group), section, group)
        except CreditlibError as error:
            problems.append(str(error))
    if problems:
        raise CreditlibError("\n".join(problems))


def check_needs(strategy: CreditStrategy, name: str, *, reward_model: bool) -> None:
    """Raise where a run, with a reward model or without one, cannot give the strategy what it needs."""
    if unmet := strategy.needs - PROVIDED - FROM_REWARD_MODELS:
        raise CreditlibError(
            f"credit={name} needs {', '.join(sorted(unmet))}, but a run provides "
            f"{', '.join(sorted(PROVIDED | FROM_REWARD_MODELS))} alone: choose another credit strategy "
            "(python -m creditlib.registry lists them)"
        )
    if strategy.needs & FROM_REWARD_MODELS and not reward_model:
        raise CreditlibError(
            f"credit={name} looks into a reward model, and this run has none: choose reward_model=tiny or "
            "reward_model=hf reward_model.preference.path=..., or another credit strategy"
        )


def build_task(section: Mapping[str, Any]) -> Task:
    """Make the task that ``task._target_`` names; this is where its data is read."""
    return check_task(build_class(section, "task"), f"task._target_={section['_target_']}")


def build_class(section: Mapping[str, Any], group: str) -> Any:
    """Make an object of the class that ``<group>._target_`` names from the settings beside it."""
    target = find_class(section["_target_"], group)
    return target(**_class_settings(target, section))


def check_task(found: object, label: str) -> Task:
    """`found`, which messages call `label`, if it is a task that is ready to be asked.

    Raises:
        CreditlibError: it is not.
    """
    if isinstance(found, type):
        raise CreditlibError(f"{label} is a class: make a task of it first")
    if not isinstance(found, Task):
        raise CreditlibError(f"{label} is not a task: it lacks {', '.join(_lacking(found, Task))}")
    return found


def find_class(target: str, group: str) -> type:
    """The class at an import path such as ``tasks.text2sql.Text2SQL``, which section `group` names."""
    module_name, _, class_name = target.rpartition(".")
    top = module_name.partition(".")[0]
    if top in OUR_PACKAGES:
        for package in OUR_PACKAGES:
            refuse_foreign(package)
    try:
        module = importlib.import_module(module_name)
    except ValueError:
        raise CreditlibError(f"{group}._target_={target}: expected package.module.Class") from None
    except ModuleNotFoundError as error:
        raise CreditlibError(
            f"{group}._target_={target}: cannot import {module_name} (no module named {error.name!r}). "
            "A module of your own must be in an installed package or in a folder on PYTHONPATH"
        ) from error
    found = getattr(module, class_name, None)
    if not isinstance(found, type):
        classes = [name for name, value in vars(module).items() if isinstance(value, type)]
        raise CreditlibError(
            f"{group}._target_={target}: {module_name} has no class {class_name}. "
            f"{nearest(class_name, classes)}"
        )
    return found


def refuse_foreign(package: str) -> None:
    """Stop where `package` (``tasks`` or ``verifiers``) is not the one that came with creditlib.

    Both names are common: another distribution may stand before ours on ``sys.path``, or may have been
    installed over ours.
    """
    ours = Path(__file__).resolve().parent.parent / package
    spec = importlib.util.find_spec(package)
    places = [Path(place).resolve() for place in (spec.submodule_search_locations or ())] if spec else []
    found = places[0] if places else (spec.origin if spec else "nothing")
    other = _other_owner(package, ours)
    if found == ours and other is None:
        return
    raise CreditlibError(
        f"creditlib needs its own package {package!r}, {ours}, but `import {package}` finds {found}"
        + (f", into which {other} was installed" if other else "")
        + ".\n  Use an environment without the other package, or take its folder off PYTHONPATH and out of "
        "the working folder.\n  Where both are installed: uninstall the other, then "
        "pip install --force-reinstall --no-deps creditlib"
    )


def _lacking(part: object, protocol: type) -> list[str]:
    """What `protocol` asks for and `part` does not have."""
    names = [name for name in dir(protocol) if not name.startswith("_")]
    if "__call__" in vars(protocol):
        names.append("__call__")
    return [name for name in names if not hasattr(part, name)]


def _check_settings(target: type, section: Mapping[str, Any], group: str) -> None:
    """Names and types of a section's settings, as its class takes them. Through JSON, in which lists stand
    for tuples.
    """
    strict = ConfigDict(extra="forbid", strict=True, arbitrary_types_allowed=True, allow_inf_nan=False)
    schema = create_model(target.__name__, __config__=strict, **_fields(target))  # type: ignore[call-overload]
    try:
        schema.model_validate_json(json.dumps(_class_settings(target, section)))
    except TypeError as error:
        raise CreditlibError(f"{group}: settings are numbers, texts, lists and mappings ({error})") from None
    except ValidationError as error:
        raise CreditlibError(
            "\n".join(explain(schema, problem, group) for problem in error.errors())
        ) from None


def _fields(part: type) -> dict[str, tuple[Any, Any]]:
    """Name -> (type, ``...`` where required) of what `part` takes, in pydantic's way of writing it."""
    try:
        hints = typing.get_type_hints(part if dataclasses.is_dataclass(part) else part.__init__)  # type: ignore[misc]
    except NameError:  # types imported for type checkers alone: then only the names are checked
        hints = {}
    return {
        name: (hints.get(name, Any), ... if parameter.default is parameter.empty else None)
        for name, parameter in inspect.signature(part).parameters.items()
    }


def _class_settings(target: type, section: Mapping[str, Any]) -> dict[str, Any]:
    """Settings for the class; `name` labels the section, and is a setting only where the class takes
    it.
    """
    left_out = {"_target_"} if "name" in _fields(target) else {"_target_", "name"}
    return {key: value for key, value in section.items() if key not in left_out}


def _other_owner(package: str, ours: Path) -> str | None:
    """The other distribution that put files into our installed `package`, if any."""
    for name in importlib.metadata.packages_distributions().get(package, ()):
        distribution = importlib.metadata.distribution(name)
        if name != "creditlib" and Path(str(distribution.locate_file(package))).resolve() == ours:
            return f"{name} {distribution.version}"
    return None
