"""Packages that kymo can do without: where one is missing, a sentence says what to install."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import kymo

# In an interpreter that has kymo and nothing else besides Python's own library.
TRY = """
import json, sys
sys.path.insert(0, sys.argv[1])
import kymo
told = {}
for statement in json.loads(sys.argv[2]):
    try:
        exec(statement)
        told[statement] = "it works"
    except ImportError as error:
        told[statement] = str(error)
print(json.dumps(told))
"""

SENTENCES = {
    "import kymo.hf": "kymo.hf needs transformers: pip install transformers",
    "from kymo.hf import ProfCallback": "kymo.hf needs transformers: pip install transformers",
    "import kymo.lightning": "kymo.lightning needs lightning: pip install lightning",
    "import kymo.accelerate": "kymo.accelerate needs accelerate: pip install accelerate",
    "from kymo.loggers import MLflowLogger; MLflowLogger()": (
        "kymo.loggers.MLflowLogger needs mlflow: pip install mlflow-skinny sqlalchemy alembic (or mlflow)"
    ),
    "from kymo.loggers import TensorBoardLogger; TensorBoardLogger()": (
        "kymo.loggers.TensorBoardLogger needs tensorboard: pip install tensorboard"
    ),
    "from kymo.loggers import by_name; by_name('csv,tensorboard')": (
        "kymo.loggers.TensorBoardLogger needs tensorboard: pip install tensorboard"
    ),
    "from kymo.loggers import Batched, CSVLogger; Batched([CSVLogger('logs')]).close()": "it works",
    "kymo.TrainingMonitor.from_config('config.yaml', 'training_step')": (
        "TrainingMonitor.from_config needs pyyaml to read a file: pip install pyyaml"
    ),
    "with kymo.TrainingMonitor(output_dir='out', run_name='a', print_summary=False): pass": "it works",
    "kymo.TrainingMonitor(enable_torch_profiling=True, output_dir='out', run_name='b').__enter__()": (
        "enable_torch_profiling needs torch: pip install torch"
    ),
}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("bare")
    (folder / "config.yaml").write_text("training_step:\n  _target_: kymo.TrainingMonitor\n")
    (folder / "kymo").symlink_to(Path(kymo.__file__).parent)  # what it is installed beside stays out of sight
    command = [sys.executable, "-I", "-S", "-c", TRY, str(folder), json.dumps(list(SENTENCES))]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("KYMO")}
    done = subprocess.run(
        command, env=environment, cwd=folder, capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr
    answers: dict[str, str] = json.loads(done.stdout)
    return answers


@pytest.mark.parametrize("statement", SENTENCES)
def test_what_to_install_is_told(statement: str, told: dict[str, str]) -> None:
    assert told[statement] == SENTENCES[statement]


# One that is missing while the others are there: it is the one that is named.
ONE = {
    ("transformers", "import kymo.hf"): "kymo.hf needs transformers: pip install transformers",
    ("torch", "import kymo.hf"): "kymo.hf needs torch: pip install torch",
    ("torch", "import kymo.lightning"): "kymo.lightning needs torch: pip install torch",
    ("torch", "import kymo.accelerate"): "kymo.accelerate needs torch: pip install torch",
    ("torch", "import kymo.torch"): "kymo.torch needs torch: pip install torch",
    ("sqlalchemy", "from kymo.loggers import MLflowLogger; MLflowLogger(tracking_uri='sqlite:///m.db')"): (
        "kymo.loggers.MLflowLogger with sqlite needs sqlalchemy: pip install sqlalchemy"
    ),
    ("alembic", "from kymo.loggers import MLflowLogger; MLflowLogger(tracking_uri='sqlite:///m.db')"): (
        "kymo.loggers.MLflowLogger with sqlite needs alembic: pip install alembic"
    ),
}

HIDE = """
import sys
sys.modules[sys.argv[1]] = None
try:
    exec(sys.argv[2])
except ImportError as error:
    print(error)
"""


@pytest.mark.parametrize(("package", "statement"), ONE)
def test_the_one_that_is_missing_is_named(package: str, statement: str) -> None:
    for name in ("transformers", "lightning", "accelerate", "mlflow"):
        pytest.importorskip(name, reason=f"{name} is not installed; tools/setup test installs it from 3.11 on")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", HIDE, package, statement]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=100, check=False)
    assert done.stdout == ONE[package, statement] + "\n", done.stderr
