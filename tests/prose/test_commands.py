"""Commands, flags, settings, targets and extras that messages and pages name exist and parse."""

import ast
import functools
import importlib
import re
import tomllib

import pytest
from absl import flags

from electra_tf.config.finetuning import FinetuningConfig
from electra_tf.config.objectives import OBJECTIVES
from electra_tf.config.pretraining import PretrainingConfig
from electra_tf.core import command_line
from electra_tf.core.command_line import COMMANDS
from electra_tf.core.settings import settings_of
from electra_tf.finetuning import command as finetuning
from electra_tf.pretraining import command as pretraining
from tests.support import sources

ROOT = sources.ROOT
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
TARGETS = set(re.findall(r"(?m)^([a-z][\w-]*):", (ROOT / "Makefile").read_text(encoding="utf-8")))
FILES = {"electra_tf.pretraining.command": "run_pretraining.py",
         "electra_tf.finetuning.command": "run_finetuning.py"}
PAGES = [*(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "benchmarks/README.md",
                                  "examples/README.md")),
         *sorted((ROOT / "docs").rglob("*.md")), *sorted(ROOT.glob("electra_tf/**/*.md"))]
CONFIGS = PretrainingConfig(), FinetuningConfig()
SECTIONS = {
    file: {name: setting for section in sections for name, setting in settings_of(section).items()}
    | dict(module.SETTINGS)
    for file, module, sections in (
        ("run_pretraining.py", pretraining, [pretraining.PretrainingFlags]),
        ("run_finetuning.py", finetuning, [finetuning.TaskFlags, finetuning.ModelFlags]))}
"""Declarations of the flags of two programs, whose values have other types than text."""

FLAG = re.compile(r"(?<![\w-])--(?:\[no\])?([a-z]\w*)"
                  r"(?:[= ]['\"]?([a-z_]+\.[a-z_]+=\S+)|=([^\s`'\")]+))?")
CALL = re.compile(r"(?:python|\$\(BIN\)/python) +(?:-m +([\w.]+)|(run_\w+\.py))"
                  rf"|(?<![\w./-])(electra (?:{'|'.join(COMMANDS)}))(?![\w/.-])|(\{{\}})(?= --)")
END = re.compile(r"`|\n|&&|\||;|, or |\. |, then ")
MAKE = re.compile(r"(?m)(?:`|^\s*(?:\$ )?)make ((?:[a-z][a-z0-9-]*\b(?!=) ?)+)")
EXTRAS = re.compile(r"(?:electra-tf|'\.)\[([\w,-]+)\]")
SETTING = re.compile(rf"(?<![\w./-])((?:{'|'.join(vars(CONFIGS[0]) | vars(CONFIGS[1]))})"
                     r"\.[a-z_]+)(?![\w./(*-])")
PLACEHOLDER = re.compile(r"[{}A-Z$<>*]|\.\.\.")
"""Marks values that a reader or the program fills in."""
OTHERS = re.compile(r"(?:pip install|uv|apt-get|curl|git|docker|helm|kubectl|gcloud|hf|pytest"
                    r"|bazel) [^`\n]*")
"""Commands of other programs."""
NOT_OURS = set("""help helpfull version name direct_running_mode environment_config
    environment_type flink_master
    flink_version job_endpoint max_num_workers parallelism prism_location project region
    sdk_container_image temp_location json spot enable_batching xla_cpu_max_isa mount
    batching_parameters_file model_config_file file_system_poll_wait_seconds
    monitoring_config_file""".split())
"""Flags of Beam, WikiExtractor, Docker, TensorFlow Serving and XLA, of every command, and
`--name=value` itself."""
NO_SETTINGS = {"model.ckpt", "model.config", "model.final_norm", "model.onnx",
               "model.safetensors", "task.dev", "task.tests", "task.type", "task.index",
               "task.name"}


@functools.cache
def programs():
    """Returns the flags of every program, by module, subcommand and file."""
    program_flags, modules, at_import = {}, {}, {}

    def take_away():
        own = {name: flags.FLAGS[name] for name in flags.FLAGS
               if not flags.FLAGS.find_module_defining_flag(name).startswith("absl.")}
        for name in own:
            delattr(flags.FLAGS, name)
        return own

    at_import |= (before := take_away())
    for path in sources.sources():
        module, tree = sources.module_name(path), sources.tree(path)
        main = [node for node in tree.body if isinstance(node, ast.If)
                and "__main__" in ast.unparse(node.test)]
        if len(path.parts) == 1 or not main or not re.search(
                r"\b(command(_line)?|driver)\.run\b", ast.unparse(tree)):
            continue
        variables = vars(importlib.import_module(module))
        at_import |= take_away()

        def record(_, define=lambda: None, *, groups=None, module=module, at_import=at_import,
                   **__):
            define()
            groups = groups or {"Flags": [
                name for name in flags.FLAGS
                if not flags.FLAGS.find_module_defining_flag(name).startswith("absl.")]}
            program_flags[module] = {
                name: flags.FLAGS[name] if name in flags.FLAGS else at_import[name]
                for group in groups.values() for name in group}

        program = variables.get("run")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(command_line, "run", record)
            if isinstance(program, functools.partial):
                patch.setitem(variables, "run",
                              functools.partial(record, *program.args, **program.keywords))
            exec(compile(ast.Module(main[0].body, []), str(path), "exec"), variables)
        take_away()
        modules |= {module.removesuffix(".__main__"): module, FILES.get(module, module): module}
    for name, flag in before.items():
        flags.FLAGS[name] = flag
    modules |= {f"electra {name}": command.module for name, command in COMMANDS.items()}
    return program_flags | {name: program_flags[module] for name, module in modules.items()}


@functools.cache
def settings():
    """Returns the names of all settings, those of variants too."""
    return {setting.name for config in CONFIGS for section in vars(config).values()
            for kind in (type(section), *map(type, OBJECTIVES.values()))
            for setting in settings_of(kind).values()}


@functools.cache
def reach():
    """Returns module -> the programs that import it."""
    importers = {}
    for name in {name for name in programs() if name in sources.modules()}:
        for module in sources.closure(name)[0]:
            importers.setdefault(module, []).append(name)
    return importers


def texts(path):
    """Yields line and text of the strings of a source file; {} stands for what is filled in."""
    parts = set()
    for node in ast.walk(sources.tree(path)):
        if isinstance(node, ast.JoinedStr):
            parts |= {id(part) for part in ast.walk(node)}
            yield node.lineno, "".join(
                part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and (
                id(node) not in parts):
            yield node.lineno, node.value


def code(page):
    """Yields line and text of the blocks of code of a page, and of code in its sentences."""
    text = page.read_text(encoding="utf-8")
    for match in re.finditer(r"(?ms)^```.*?^```|(?:^ {4,}\S[^\n]*\n)+|`[^`\n]+`", text):
        yield text[:match.start()].count("\n") + 1, match[0]


def problems(text, owners):
    """Yields what does not exist of a text whose flags outside of commands belong to `owners`."""
    text = re.sub(r"\\\n\s*", " ", text)
    yield from (f"no extra {name}" for names in EXTRAS.findall(text) for name in names.split(",")
                if name not in PROJECT["optional-dependencies"])
    text = OTHERS.sub("", text)
    rest, position = [], 0
    for call in CALL.finditer(text):
        name = next(filter(None, call.groups())).rstrip(".")
        end = END.search(text, call.end())
        rest.append(text[position:call.start()])
        position = end.start() if end else len(text)
        if name in programs() or name == "{}":
            yield from wrong_flags(text[call.end():position],
                                   programs() if name == "{}" else [name])
        elif not runs(name) and name.startswith(sources.PACKAGES):
            yield f"no program {name}"
    rest = " ".join([*rest, text[position:]])
    named = [name for name in programs() if name.split(".")[-1] != "run" and re.search(
        rf"(?<![\w-]){re.escape(name if name.endswith('.py') else name.split('.')[-1])}\b", text)]
    yield from wrong_flags(rest, [*owners, *named])
    yield from (f"no setting {name}" for name in SETTING.findall(text)
                if name not in settings() | NO_SETTINGS)
    yield from (f"no target {name}" for names in MAKE.findall(text) for name in names.split()
                if name not in TARGETS)


def runs(module):
    """Returns True for a module without flags that can be started."""
    path = sources.modules().get(module) or sources.modules().get(f"{module}.__main__")
    return path is not None and "__main__" in (ROOT / path).read_text(encoding="utf-8")


def wrong_flags(text, owners):
    """Yields the flags of a text that none of these programs takes, or not with this value."""
    for name, assignment, value in FLAG.findall(text):
        value = value.rstrip(".,;:")
        takers = [(owner, spelt) for owner in owners
                  for spelt in (name, name.removeprefix("no")) if spelt in programs()[owner]]
        if not takers and name not in NOT_OURS:
            yield f"no --{name} in {', '.join(sorted(set(owners))[:4])}"
        elif takers and value and not assignment and not PLACEHOLDER.search(value):
            errors = [error for owner, spelt in takers
                      if (error := wrong_value(owner, spelt, value))]
            if len(errors) == len(takers):
                yield f"--{name}={value}: {errors[0]}"


def wrong_value(owner, name, value):
    """Returns why a program refuses the value of a flag; "" if it accepts it."""
    setting = next((known[name] for script, known in SECTIONS.items()
                    if programs()[owner] is programs()[script] and name in known), None)
    try:
        if setting is None:
            programs()[owner][name].parser.parse(value)
        elif programs()[owner] is not programs()["run_finetuning.py"] or (
                setting.read_several(value) is None):  # Several values with commas form a grid.
            setting.read(value)
    except (ValueError, TypeError) as error:
        return str(error)
    return ""


@pytest.mark.parametrize("package", ["electra_tf", "data_prep", "experiments", "benchmarks"])
def test_what_a_message_tells_to_type_exists(package):
    wrong = []
    for path in sources.sources():
        for line, text in texts(path) if path.parts[0] in (package, f"{package}.py") else ():
            # A string that is a flag alone is an argument of another program.
            owners = programs() if re.fullmatch(r"--\S*", text) else reach().get(
                sources.module_name(path), ())
            wrong += [f"{path}:{line}: {problem}" for problem in problems(text, owners)]
    assert wrong == []


def test_what_a_page_tells_to_type_exists():
    assert [f"{page.relative_to(ROOT)}:{line}: {problem}" for page in PAGES
            for line, text in code(page) for problem in problems(text, programs())] == []


@pytest.mark.parametrize(("text", "problem"), [
    ("`python -m electra_tf.apps.tools.inspect_records --data_dir=DIR` names it.",
     "no --data_dir in electra_tf.apps.tools.inspect_records"),
    ("run electra inspect --nothing=1", "no --nothing in electra inspect"),
    ("python -m electra_tf.apps.inspect records", "no program electra_tf.apps.inspect"),
    ("Give --modell_dir=x.", "no --modell_dir in run_pretraining.py"),
    ("Give --mode=predict.", "--mode=predict: --mode must be one of train, eval, samples."),
    ("add --set model.layers=3", "no setting model.layers"),
    ("`make lint everything` installs it", "no target everything"),
    ("pip install 'electra-tf[all]'", "no extra all"),
    ("`python run_pretraining.py --num_gpus=many`",
     "--num_gpus=many: runtime.num_gpus must be a whole number")])
def test_a_wrong_advice_is_detected(text, problem):
    [message] = problems(text, ["run_pretraining.py"])
    assert message.startswith(problem)
