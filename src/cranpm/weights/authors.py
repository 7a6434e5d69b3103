"""The folder that the authors publish: `model.safetensors` and `config.json`, under their names."""

import re
from collections.abc import Mapping

from torch import Tensor

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
    """The authors' tensors under our names and in our shapes, as float32; values are not touched."""
    ours = {}
    for name, tensor in theirs.items():
        for pattern, replacement in _NAMES:
            name = re.sub(pattern, replacement, name)
        if name.endswith(".patches.weight"):
            tensor = tensor.flatten(1)  # an older release kept it as a convolution
        elif name.endswith(".beta"):
            tensor = tensor.flatten()
        ours[name] = tensor.float()
    return ours
