"""The folder that the authors publish: `model.safetensors` and `config.json`, under their names."""

import json
import re
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError
from torch import Tensor

from cranpm.core.errors import CranpmError
from cranpm.core.grid import DOMAINS
from cranpm.network import ReleasedSettings
from cranpm.network.released_settings import UNITS
from cranpm.weights.card import Card, NetworkCard

CONFIG = "config.json"
IGNORED = frozenset({"decoder_depth"})
"""Keys of their configuration that their network never reads; any other that we do not know is refused."""
_ABOUT = """The network as its authors released it, run by our code. It differs from the paper's: plain transformer
blocks, lead time in the coarse branch, one wind vector per tile, a weak elevation bias. Its wind scan has no
effect."""


def read_config(data: bytes) -> dict[str, Any]:
    """The authors' configuration from JSON."""
    try:
        config = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise CranpmError(expected=f"JSON in {CONFIG}", found=str(error), remedy="Fetch the folder again.") from None
    return config if isinstance(config, dict) else {}


def card(config: Mapping[str, Any]) -> Card:
    """What is known about the authors' weights from their configuration."""
    sizes = config.get("model")
    if isinstance(sizes, Mapping):
        sizes = {name: value for name, value in sizes.items() if name not in IGNORED}
    try:
        settings = ReleasedSettings.model_validate(sizes)
    except ValidationError as error:
        problem = error.errors()[0]
        raise CranpmError(
            expected='the sizes of the released network under "model"',
            found=f"{'.'.join(map(str, problem['loc'])) or 'model'}: {problem['msg']}",
            remedy="Use the configuration that was published with the weights.",
        ) from None
    unnamed = {f"unnamed{index}": "1" for index in range(settings.channels)}
    units = UNITS if settings.channels == len(UNITS) else unnamed
    return Card(
        network=NetworkCard(kind=settings.kind, settings=settings),
        scales=settings.scales,
        channels=tuple(units.items()),
        leads=settings.leads,
        domain=str(DOMAINS["europe"]),
        stations_in_loss="unknown",
        licence="other",
        about=_ABOUT,
    )


_NAMES = (
    (r"^global_branch\.lead_time_embed", "lead"),
    (r"^global_branch", "coarse"),
    (r"^local_branch", "fine"),
    (r"^cross_attention\.global_proj", "bridge.project"),
    (r"^cross_attention\.layers", "bridge.cross.layers"),
    (r"^prediction_head", "decoder"),
    (r"\.pos_embed$", ".positions"),
    (r"\.patch_embed\.", ".patches."),
    (r"\.norm_embed\.", ".norm_patches."),
    (r"\.blocks\.0\.attn\.alpha$", ".alpha"),
    (r"\.blocks\.0\.attn\.rel_pos_bias\.bias_table$", ".relative.table"),
    (r"\.attn\.qkv\.", ".attention.qkv."),
    (r"\.attn\.proj\.", ".attention.out."),
    (r"\.norm1\.", ".norm."),
    (r"\.(norm2|norm_ffn)\.", ".norm_mlp."),
    (r"\.mlp\.fc1\.", ".mlp.0."),
    (r"\.mlp\.fc2\.", ".mlp.2."),
    (r"\.norm_q\.", ".norm_query."),
    (r"\.norm_kv\.", ".norm_key."),
    (r"\.q_proj\.", ".query."),
    (r"\.k_proj\.", ".key."),
    (r"\.v_proj\.", ".value."),
    (r"\.out_proj\.", ".out."),
    (r"\.skip_fuse\.0\.", ".fuse."),
    (r"\.stages\.(\d)\.conv\.", r".stages.\1.0.up.0."),
    (r"\.stages\.(\d)\.resblock\.conv1\.", r".stages.\1.0.residual.first."),
    (r"\.stages\.(\d)\.resblock\.conv2\.", r".stages.\1.0.residual.second."),
    (r"^decoder\.final\.", "decoder.head."),
)


def our_tensors(theirs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The authors' tensors under our names and in our shapes."""
    ours = {}
    for name, tensor in theirs.items():
        for pattern, replacement in _NAMES:
            name = re.sub(pattern, replacement, name)
        if name.endswith(".patches.weight"):
            tensor = tensor.flatten(1)  # an older release kept it as a convolution
        elif name.endswith(".beta"):
            tensor = tensor.flatten()
        ours[name] = tensor
    return ours
