"""Optional packages: if one is missing, a message names the package to install."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import marey

# In an interpreter that has marey and nothing else besides Python's own library.
TRY = """
import json, sys
sys.path.insert(0, sys.argv[1])
import marey
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
    "import marey.hf": "marey.hf needs transformers: pip install transformers",
    "from marey.hf import ProfCallback": "marey.hf needs transformers: pip install transformers",
    "import marey.lightning": "marey.lightning needs lightning: pip install lightning",
    "import marey.accelerate": "marey.accelerate needs accelerate: pip install accelerate",
    "from marey.loggers import MLflowLogger; MLflowLogger()": (
        "marey.loggers.MLflowLogger needs mlflow: pip install mlflow-skinny sqlalchemy alembic (or mlflow)"
    ),
    "from marey.loggers import TensorBoardLogger; TensorBoardLogger()": (
        "marey.loggers.TensorBoardLogger needs tensorboard: pip install tensorboard"
    ),
    "from marey.loggers import by_name; by_name('csv,tensorboard')": (
        "marey.loggers.TensorBoardLogger needs tensorboard: pip install tensorboard"
    ),
    "from marey.loggers import Batched, CSVLogger; Batched([CSVLogger('logs')]).close()": "it works",
    "marey.TrainingMonitor.from_config('config.yaml', 'training_step')": (
        "TrainingMonitor.from_config needs pyyaml to read a file: pip install pyyaml"
    ),
    "with marey.TrainingMonitor(output_dir='out', run_name='a', print_summary=False): pass": "it works",
    "marey.TrainingMonitor(enable_torch_profiling=True, output_dir='out', run_name='b').__enter__()": (
        "enable_torch_profiling needs torch: pip install torch"
    ),
}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("bare")
    (folder / "config.yaml").write_text("training_step:\n  _target_: marey.TrainingMonitor\n")
    (folder / "marey").symlink_to(Path(marey.__file__).parent)  # what it is installed beside stays out of sight
    command = [sys.executable, "-I", "-S", "-c", TRY, str(folder), json.dumps(list(SENTENCES))]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("MAREY")}
    done = subprocess.run(
        command, env=environment, cwd=folder, capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr
    answers: dict[str, str] = json.loads(done.stdout)
    return answers


@pytest.mark.parametrize("statement", SENTENCES)
def test_what_to_install_is_reported(statement: str, told: dict[str, str]) -> None:
    assert told[statement] == SENTENCES[statement]


# One that is missing while the others are there: it is the one that is named.
ONE = {
    ("transformers", "import marey.hf"): "marey.hf needs transformers: pip install transformers",
    ("torch", "import marey.hf"): "marey.hf needs torch: pip install torch",
    ("torch", "import marey.lightning"): "marey.lightning needs torch: pip install torch",
    ("torch", "import marey.accelerate"): "marey.accelerate needs torch: pip install torch",
    ("torch", "import marey.torch"): "marey.torch needs torch: pip install torch",
    ("sqlalchemy", "from marey.loggers import MLflowLogger; MLflowLogger(tracking_uri='sqlite:///m.db')"): (
        "marey.loggers.MLflowLogger with sqlite needs sqlalchemy: pip install sqlalchemy"
    ),
    ("alembic", "from marey.loggers import MLflowLogger; MLflowLogger(tracking_uri='sqlite:///m.db')"): (
        "marey.loggers.MLflowLogger with sqlite needs alembic: pip install alembic"
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
