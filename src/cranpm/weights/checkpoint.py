"""From the checkpoint that the authors publish to a folder of weights, without trusting it."""

import subprocess
import sys
import tempfile
from pathlib import Path

from cranpm.core.errors import CranpmError
from cranpm.weights import authors
from cranpm.weights.folder import Weights, from_authors, load_weights, parse_tensors, save_weights

PREFIX, TRAINING_ONLY = "model.", "criterion."
MINUTES = 15


def import_weights(source: Path, out: Path) -> Weights:
    """Turn a Lightning checkpoint, or the authors' folder, into a folder of weights `out`; the pickle is opened in a
    process that can do nothing but compute."""
    weights = load_weights(source) if source.is_dir() else _from_checkpoint(source)
    save_weights(out, weights.network, weights.card)
    return load_weights(out)


def _from_checkpoint(source: Path) -> Weights:
    if not source.is_file():
        raise CranpmError(expected=f"a checkpoint at {source}", found="no such file", remedy="Check the path.")
    with tempfile.TemporaryDirectory() as folder:
        tensors, config = Path(folder) / "tensors", Path(folder) / "config"
        _unpickle(source.absolute(), tensors, config)
        found = parse_tensors(tensors.read_bytes(), source)
        settings = authors.read_config(config.read_bytes())
    kept = {name.removeprefix(PREFIX): tensor for name, tensor in found.items() if not name.startswith(TRAINING_ONLY)}
    return from_authors(kept, settings)


def _unpickle(source: Path, tensors: Path, config: Path) -> None:
    """Run the confined process; what it prints on failure is the reason."""
    command = [sys.executable, "-I", "-m", "cranpm.weights.unpickle", str(source), str(tensors), str(config)]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60 * MINUTES, env={}, check=False
        )
        failed, lines = done.returncode != 0, done.stderr.strip().splitlines()
    except subprocess.TimeoutExpired:
        failed, lines = True, [f"nothing after {MINUTES} minutes"]
    if failed:
        raise CranpmError(
            expected=f"tensors, and settings under hyper_parameters, in the checkpoint {source}",
            found=lines[-1] if lines else f"a process that ended with code {done.returncode}",
            remedy="Import only checkpoints of the released network. A pickle that needs more than tensors and plain "
            "containers is not opened.",
        )
