"""configs/ against the schema: what composes, what is refused, and with which words."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from creditlib import cli, registry
from creditlib.compose import compose_jobs, compose_one, configs_folder, options
from creditlib.config import EvaluateConfig, ExportConfig, RunConfig, SftConfig, nearest, parse_section
from creditlib.help import meanings
from creditlib.types import CreditlibError

CONFIGS = configs_folder()
FILES = sorted(CONFIGS.rglob("*.yaml"))
EXPERIMENTS = [path.stem for path in (CONFIGS / "experiment").glob("*.yaml")]


def refused(*overrides: str) -> str:
    with pytest.raises(CreditlibError) as caught:
        cli.compose(overrides)
    return str(caught.value)


# Options that need a setting; which that is; options that are another one with other settings.
NEEDED = {
    "routed": ["credit.by_reward={format: mrtpo}"],
    **{credit: ["reward_model=tiny"] for credit in ("datc", "p2t", "red")},
}
REQUIRED = {"routed": ["by_reward"], "dr_grpo": ["max_tokens"]}
VARIANTS = {"grpo_population": "grpo"}


def test_the_default_run_is_the_demo() -> None:
    config = cli.compose([])
    assert (config.task["name"], config.model.name, config.credit.name) == ("text2sql", "tiny", "uniform")
    assert config == cli.compose(["task=text2sql", "credit=uniform", "advantage=gdpo", "trainer=demo"])


@pytest.mark.parametrize("group", ["task", "credit", "advantage", "loss", "model", "rollout", "trainer"])
def test_every_option_of_every_group_composes(group: str) -> None:
    for option in options(group, [CONFIGS]):
        config = cli.compose([f"{group}={option}", "model.path=some/model", *NEEDED.get(option, ())])
        section = getattr(config, group)
        name = section["name"] if group == "task" else getattr(section, "name", option)
        assert name == VARIANTS.get(option, option)


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_every_experiment_composes(experiment: str) -> None:
    assert cli.compose([f"experiment={experiment}"]) != cli.compose([])


def test_experiment_then_overrides() -> None:
    config = cli.compose(["experiment=dr_grpo", "rollout.max_tokens=77"])
    assert config.advantage.hyperparameters["scale"] == "none"
    assert config.loss.hyperparameters["max_tokens"] == 77


@pytest.mark.parametrize("group", ["advantage", "credit", "loss"])
def test_files_repeat_the_defaults_of_the_part(group: str) -> None:
    """A file shows each setting of its part, at the part's own default."""
    for name in registry.names(group):
        if not (CONFIGS / group / f"{name}.yaml").is_file():
            continue
        section = getattr(cli.compose([f"{group}={name}", *NEEDED.get(name, ())]), group)
        needed = {key: section.hyperparameters[key] for key in REQUIRED.get(name, ())}
        default = registry.build(group, name, **needed)
        assert registry.build(group, name, **section.hyperparameters) == default
        fields = {field.name for field in dataclasses.fields(default)} - {"max_tokens"}
        assert fields <= set(section.hyperparameters), f"configs/{group}/{name}.yaml leaves out settings"


def test_files_repeat_the_defaults_of_the_schema() -> None:
    run = cli.compose(["trainer=default"])
    for name, section in run:
        if name in {"trainer", "rollout", "eval", "log", "prompt", "model"}:
            assert section == type(section)(), f"configs and schema disagree about {name}"
    sft = parse_section(SftConfig, compose_one("sft", []))
    for name in ("sft", "eval", "log", "prompt"):
        section = getattr(sft, name)
        assert section == type(section)(), f"configs and schema disagree about {name}"


@pytest.mark.parametrize("file", FILES, ids=lambda path: str(path.relative_to(CONFIGS)))
def test_files_explain_themselves(file: Path) -> None:
    """A first line says what the file is; a setting has a comment there or in another file of the group."""
    lines = [line for line in file.read_text().splitlines() if not line.startswith("# @")]
    assert re.match(r"# \S", lines[0])
    if file.parent == CONFIGS or file.parent.name == "experiment":
        return
    explained = {
        key.rpartition(".")[2] for path in file.parent.glob("*.yaml") for key in meanings(path, "x.")
    }
    settings = set(re.findall(r"^(\w+):", file.read_text(), re.MULTILINE))
    assert settings <= explained | {"name", "_target_", "defaults", "lora"}


def test_a_setting_can_be_written_into_an_empty_section() -> None:
    config = cli.compose(["model.lora.r=8"])
    assert config.model.lora is not None
    assert (config.model.lora.r, config.model.lora.alpha) == (8, 32.0)


@pytest.mark.parametrize(
    ("override", "key", "suggestion"),
    [
        ("trainer.stepz=3", "trainer.stepz", "steps"),
        ("+trainer.stepz=3", "trainer.stepz", "steps"),
        ("model.lora.rr=3", "model.lora.rr", "r"),
        ("creditt=uniform", "creditt", "credit"),
        ("+sead=1", "sead", "seed"),
        ("credit=unifrom", "credit=unifrom", "uniform"),
        ("trainer=dmo", "trainer=dmo", "demo"),
        ("experiment=dappo", "experiment=dappo", "dapo"),
        ("advantage.weigths=[1,1]", "advantage.weigths", "weights"),
        ("loss.clip_hi=0.3", "loss.clip_hi", "clip_high"),
        ("task.nam=x", "task.nam", "name"),
    ],
)
def test_unknown_names_get_the_nearest(override: str, key: str, suggestion: str) -> None:
    message = refused(override)
    assert message.startswith(key)
    assert f"Did you mean {suggestion!r}?" in message


def test_without_anything_near_all_are_listed() -> None:
    assert nearest("zzz", ["b", "a"]) == "Known: a, b."
    assert nearest("zzz", []) == ""
    assert "Known: gdpo, grpo" in refused("advantage=zzz")


@pytest.mark.parametrize(
    ("override", "found"),
    [
        ("trainer.steps=many", "'many'"),
        ("trainer.steps=1.5", "1.5"),
        ("trainer.steps=true", "True"),
        ("seed=-1", "-1"),
        ("rollout.temperature=0", "0"),
        ("rollout.top_p=1.2", "1.2"),
        ("model.dtype=float8", "'float8'"),
        ("log.trackers=[wandb,excel]", "'excel'"),
        ("advantage.eps=big", "'big'"),
        ("loss.aggregation=mean", "'mean'"),
        ("loss.kl_coef=-1", "-1"),
        ("trainer.betas=[0.9,1]", "1"),
        ("trainer.betas=[-0.1,0.9]", "-0.1"),
        ("seed=18446744073709551616", "18446744073709551616"),
        ("run.dir=", "''"),
        ("trainer.learning_rate=inf", "inf"),
        ("trainer.max_grad_norm=nan", "nan"),
        ("loss.correction_high=inf", "inf"),
        ("advantage.eps=nan", "nan"),
        ("task.seconds=inf", "inf"),
    ],
)
def test_wrong_values_are_named_with_their_key(override: str, found: str) -> None:
    message = refused(override)
    assert message.startswith(override.partition("=")[0])
    assert f"found {found}" in message


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (["trainer.prompts_per_step=6", "trainer.minibatches=4"], ("prompts_per_step=6", "minibatches=4")),
        (["model=hf"], ("model.path",)),
        (
            ["advantage=grpo", "advantage.scale=none", "advantage.floor=0.1"],
            ("advantage.floor", "scale=none"),
        ),
    ],
)
def test_impossible_combinations(overrides: list[str], words: tuple[str, ...]) -> None:
    message = refused(*overrides)
    assert all(word in message for word in words)


def test_required_settings() -> None:
    values = compose_one("export", ["model.path=somewhere"])
    with pytest.raises(CreditlibError, match=r"^out: is required and missing$"):
        parse_section(ExportConfig, values)
    assert parse_section(ExportConfig, values | {"out": "folder"}).out == "folder"


def test_all_problems_are_told_at_once() -> None:
    assert len(refused("trainer.stepz=1", "seed=-1", "eval.limt=3").splitlines()) == 3
    assert len(refused("loss.x=1", "advantage.y=1").splitlines()) == 2


@pytest.mark.parametrize(
    "override", ["trainer={steps", "nothing", "run.dir=${nowhere}", "~nothing", "hydra.run.dir=x", "seed=1,2"]
)
def test_unreadable_arguments(override: str) -> None:
    message = refused(override)
    assert "hydra.cc" not in message
    assert len(message.splitlines()) == 1


@pytest.mark.parametrize("target", ["tasks.nowhere.Task", "tasks.text2sql.Nothing", "tasks"])
def test_targets_that_lead_nowhere(target: str) -> None:
    assert refused(f"task._target_={target}").startswith(f"task._target_={target}")


def test_python_mappings_and_arguments_mean_the_same() -> None:
    arguments = ["task=text2sql", "loss=dapo", "trainer.steps=5", "model.lora.r=4", "eval.splits=[a]"]
    mapping: dict[str, Any] = {"task": "text2sql", "loss": "dapo", "trainer": {"steps": 5}}
    mapping |= {"model.lora.r": 4, "eval": {"splits": ["a"]}}
    assert cli.compose(mapping) == cli.compose(arguments)


def test_values_from_python_need_not_be_those_of_yaml() -> None:
    mapping: dict[str, Any] = {
        "trainer.betas": (0.9, 0.99),
        "run.dir": Path("somewhere"),
        "seed": np.int64(3),
    }
    mapping |= {"loss": {"name": "grpo", "kl_coef": np.float64(0.5)}, "advantage.weights": np.ones(3)}
    config = cli.compose(mapping)
    assert (config.trainer.betas, config.run.dir, config.seed) == ((0.9, 0.99), "somewhere", 3)
    assert config.loss.hyperparameters == {"kl_coef": 0.5}
    assert config.advantage.hyperparameters["weights"] == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("settings", [5, None, "task=text2sql", b"seed=1", [5], {"seed"}, RunConfig])
def test_what_are_no_settings(settings: Any) -> None:
    with pytest.raises(CreditlibError, match=r'expected settings as a list of texts, \["task=text2sql"'):
        cli.compose(settings)


@pytest.mark.parametrize("key", [5, None, ("seed",)])
def test_keys_that_name_no_setting(key: Any) -> None:
    with pytest.raises(CreditlibError, match="expected the names of settings as keys"):
        cli.compose({key: 1})


def test_a_name_that_no_folder_can_have() -> None:
    with pytest.raises(CreditlibError, match=r"^run\.dir: "):
        cli.compose({"run.dir": "a\0b"})


def test_no_bound_survives_saving() -> None:
    """JSON has no infinity, so a bound that is not there is null, before and after."""
    config = cli.compose(["loss.correction_high=null"])
    again = RunConfig.parse(json.loads(json.dumps(config.model_dump(mode="json"), allow_nan=False)))
    assert again == config and again.loss.hyperparameters["correction_high"] is None


def test_a_mapping_that_names_its_part_replaces_the_section() -> None:
    config = cli.compose({"loss": {"name": "cispo", "ratio_max": 3.0}})
    assert config.loss.hyperparameters == {"ratio_max": 3.0}


@pytest.mark.parametrize(
    ("group", "part", "message"),
    [
        (
            "credit",
            "creditlib.advantage.gdpo:Gdpo",
            "credit=misfit: Gdpo lacks assign, needs (creditlib.types.",
        ),
        (
            "advantage",
            "creditlib.credit.uniform:Uniform",
            "advantage=misfit: Uniform lacks norm, __call__ (credit",
        ),
    ],
)
def test_a_part_that_lacks_something_of_its_protocol(
    group: str, part: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(registry.BUILT_IN[group], "misfit", part)
    assert refused(f"{group}=misfit").startswith(message)


def test_a_registered_part_needs_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.BUILT_IN["advantage"], "other", "creditlib.advantage.grpo:Grpo")
    config = cli.compose(["advantage=other", "advantage.std=population"])
    assert config.advantage.name == "other"
    assert config.advantage.hyperparameters == {"std": "population"}
    assert "advantage.stdd" in refused("advantage=other", "advantage.stdd=population")


def test_groups_of_another_command() -> None:
    with pytest.raises(CreditlibError, match=r"sft has no such group\. Known: model, reward_model, rollout"):
        compose_one("sft", ["credit=uniform"])
    with pytest.raises(CreditlibError, match="seed=1,2: several values"):
        compose_one("sft", ["seed=1,2"])


def test_no_choice() -> None:
    assert cli.compose(["experiment=null"]) == cli.compose([])
    assert "credit" in refused("credit=null")


def test_hydras_plus_before_a_group_is_not_needed_but_may_stand() -> None:
    assert cli.compose(["+experiment=dapo"]) == cli.compose(["experiment=dapo"])


def test_mappings_merge_into_sections_and_replace_values() -> None:
    config = cli.compose(["trainer={steps: 3}", "task.evaluation={mine: mine.json}"])
    assert (config.trainer.steps, config.trainer.prompts_per_step) == (3, 16)
    assert config.task["evaluation"] == {"mine": "mine.json"}


@pytest.mark.parametrize("section", ["eval.every=3", "log.samples=4", "log.every=3", "log.trackers=[wandb]"])
def test_only_training_takes_what_only_training_does(section: str) -> None:
    key = section.partition("=")[0]
    for command, schema in (("sft", SftConfig), ("evaluate", EvaluateConfig)):
        with pytest.raises(CreditlibError, match=rf"^{key.split('.')[0]}(\.|: no such setting)"):
            parse_section(schema, compose_one(command, [section]))
    assert cli.compose([section]) != cli.compose([])


def test_the_documentation_shows_true_messages() -> None:
    page = (CONFIGS.parent / "docs" / "configuration.md").read_text()
    for overrides in (("trainer.stepz=1", "eval.limt=3"), ("loss=dapo", "loss.clip_hi=0.3")):
        assert f"```\nerror: {refused(*overrides)}\n```" in page


def test_a_sweep_is_the_product_with_a_folder_a_job() -> None:
    jobs = compose_jobs("train", ["advantage=grpo,gdpo", "seed=range(0,3)", "trainer.steps=2"], multirun=True)
    assert [job.label for job in jobs[:2]] == ["advantage=grpo,seed=0", "advantage=grpo,seed=1"]
    configs = [RunConfig.parse(job.values) for job in jobs]
    assert len({config.run.dir for config in configs}) == len(jobs) == 6
    assert configs[-1].run.dir == "runs/text2sql-tiny-uniform-gdpo-seed2"
    assert (configs[-1].advantage.name, configs[-1].seed, configs[-1].trainer.steps) == ("gdpo", 2, 2)


def test_a_sweep_over_a_setting_that_the_folder_does_not_name() -> None:
    jobs = compose_jobs("train", ["loss.kl_coef=0,0.1", "run.dir=runs/kl"], multirun=True)
    assert [job.values["run"]["dir"] for job in jobs] == [
        "runs/kl/loss.kl_coef=0",
        "runs/kl/loss.kl_coef=0.1",
    ]


def test_a_sweep_with_the_same_job_twice() -> None:
    with pytest.raises(CreditlibError, match="the same"):
        compose_jobs("train", ["loss.kl_coef=0,0"], multirun=True)


def test_composing_inside_a_hydra_application() -> None:
    import hydra
    from hydra.core.global_hydra import GlobalHydra

    with hydra.initialize_config_dir(str(CONFIGS), version_base="1.3"):
        outer = GlobalHydra.instance().hydra
        cli.compose([])
        assert GlobalHydra.instance().hydra is outer


def test_a_task_chooses_what_goes_with_it_unless_the_command_does() -> None:
    """Options of other groups that the command has; a choice, a part or a whole section given wins."""
    composed = compose_one("train", ["task=preference", "credit=datc"])
    assert (
        composed["advantage"]["std"] == "population"
        and composed["reward_model"]["preference"]["name"] == "tiny"
    )
    assert "goes_with" not in composed["task"]
    composed = compose_one("train", ["task=preference", "advantage=gdpo", "reward_model=null"])
    assert composed["advantage"]["name"] == "gdpo" and "reward_model" not in composed
    assert RunConfig.parse(composed).reward_model == {}
    composed = compose_one("train", {"task": "preference", "advantage": {"name": "gdpo"}})
    assert composed["advantage"] == {"name": "gdpo"} and "preference" in composed["reward_model"]
    # An experiment's choice is a choice; what it chooses for a task comes along.
    composed = compose_one("train", ["task=preference", "experiment=dr_grpo"])
    assert composed["advantage"]["std"] == "sample" and "preference" in composed["reward_model"]
    assert compose_one("evaluate", ["task=preference"])["reward_model"]["preference"]["name"] == "tiny"
    sft = compose_one("sft", ["task=preference"])
    assert "advantage" not in sft and "preference" in sft["reward_model"]
    composed = compose_one("train", ["task=text2sql", "reward_model=hf", "reward_model.preference.path=a/b"])
    assert RunConfig.parse(composed).reward_model["preference"].path == "a/b"


def test_reward_models_of_other_names() -> None:
    composed = compose_one("train", ["task=preference", "reward_model.harmless={path: a/b, dtype: float32}"])
    assert list(RunConfig.parse(composed).reward_model) == ["preference", "harmless"]
    with pytest.raises(CreditlibError, match="needs a path"):
        RunConfig.parse(compose_one("train", ["reward_model=hf"]))
    with pytest.raises(CreditlibError, match="Did you mean 'path'"):
        RunConfig.parse(compose_one("train", ["reward_model=tiny", "reward_model.preference.pth=x"]))


def test_what_goes_with_a_task_must_be_options(tmp_path: Path) -> None:
    (tmp_path / "task").mkdir()
    for said, fits in (("[gdpo]", False), ("", True), ("{advantage: grpo}", True), ("{weather: fine}", True)):
        (tmp_path / "task" / "mine.yaml").write_text(f"name: mine\n_target_: a.B\ngoes_with: {said}\n")
        if fits:
            (job,) = compose_jobs("train", ["task=mine"], folder=str(tmp_path))
            assert job.values["advantage"]["name"] == ("grpo" if "grpo" in said else "gdpo")
        else:
            with pytest.raises(CreditlibError, match=r"task\.goes_with: expected options"):
                compose_jobs("train", ["task=mine"], folder=str(tmp_path))


def test_the_page_says_where_public_data_lies() -> None:
    page = (CONFIGS.parent / "docs" / "configuration.md").read_text(encoding="utf-8")
    rows = {row.split("`")[1]: row for row in page.splitlines() if row.startswith("| `")}
    for file in sorted((CONFIGS / "task").glob("*.yaml")):
        if found := re.search(
            r"^data: \$\{oc.env:CREDITLIB_DATA,data\}/(\S+)", file.read_text(), re.MULTILINE
        ):
            assert f"| `{found[1]}/" in rows[file.stem], file.name
