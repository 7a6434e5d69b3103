"""The one place that opens a pickle, run as a separate process: `python -m cranpm.weights.unpickle`.

It reads the checkpoint into memory, opens its two outputs and confines itself. Only then does it unpickle, and
`weights_only=True` admits tensors and plain containers alone.
"""

import io
import json
import re
import sys
from pathlib import Path
from typing import Any, BinaryIO

import safetensors.torch
import torch

from cranpm.weights.confine import confine


def warm_up() -> None:
    """Let torch and safetensors import what they need while files can still be opened."""
    buffer = io.BytesIO()
    torch.save({"tensor": torch.zeros(1)}, buffer)
    buffer.seek(0)
    torch.load(buffer, weights_only=True, map_location="cpu")
    safetensors.torch.save({"tensor": torch.zeros(1)})


def convert(data: bytes, tensors: BinaryIO, config: BinaryIO) -> None:
    """Write the tensors of the network as safetensors and its settings as JSON."""
    checkpoint: Any = torch.load(io.BytesIO(data), weights_only=True, map_location="cpu")
    state = checkpoint["state_dict"]
    kept = {name: value.contiguous().clone() for name, value in state.items() if isinstance(value, torch.Tensor)}
    tensors.write(safetensors.torch.save(kept))
    config.write(json.dumps(checkpoint["hyper_parameters"]["config"]).encode())


def reason(error: Exception) -> str:
    """One line; for a pickle that asks for more than tensors, what it asks for."""
    if type(error).__name__ == "UnpicklingError":  # torch's own text recommends to open it unsafely
        wanted = re.search(r"GLOBAL (\S+)", str(error))
        return f"a pickle that asks for {wanted[1] if wanted else 'more than tensors'}"
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else 'no message'}"


def main(source: str, tensors: str, config: str) -> None:
    torch.set_num_threads(1)
    data = Path(source).read_bytes()
    warm_up()
    with open(tensors, "wb") as tensors_out, open(config, "wb") as config_out:
        try:
            confine(len(data))
            convert(data, tensors_out, config_out)
        except Exception as error:
            print(reason(error), file=sys.stderr)
            sys.exit(1)


if __name__ == "__main__":
    main(*sys.argv[1:])
