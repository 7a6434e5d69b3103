"""The authors' network, small, with random weights, and files as they publish them."""

from pathlib import Path

import torch
from torch import Tensor

from cranpm.network import Released, ReleasedSettings
from cranpm.network.scaling import Scales

SMALL = ReleasedSettings(
    era5_channels=14,
    global_img_size=(56, 112),
    global_embed_dim=48,
    global_depth=3,
    global_num_heads=4,
    local_img_size=(128, 128),
    local_embed_dim=32,
    local_depth=2,
    local_num_heads=4,
    cross_num_heads=4,
)


PLAIN = Scales(mean=(0.0,) * 7, spread=(1.0,) * 7)


def released(seed: int = 0, **changes: object) -> Released:
    torch.manual_seed(seed)
    network = Released(SMALL.model_copy(update=changes), PLAIN).eval()
    torch.nn.init.normal_(network.coarse.relative.table)
    return network


def their_tensors(network: Released) -> dict[str, Tensor]:
    """A published file made from one of ours, under the authors' names."""
    renames = (
        ("lead.", "global_branch.lead_time_embed."),
        ("coarse.", "global_branch."),
        ("fine.", "local_branch."),
        ("bridge.project", "cross_attention.global_proj"),
        ("bridge.cross.", "cross_attention."),
        ("decoder.head", "prediction_head.final"),
        ("decoder.fuse", "prediction_head.skip_fuse.0"),
        ("decoder.", "prediction_head."),
        (".0.up.0.", ".conv."),
        (".0.residual.first.", ".resblock.conv1."),
        (".0.residual.second.", ".resblock.conv2."),
        (".positions", ".pos_embed"),
        (".norm_patches.", ".norm_embed."),
        (".patches.", ".patch_embed."),
        ("branch.alpha", "branch.blocks.0.attn.alpha"),
        ("branch.relative.table", "branch.blocks.0.attn.rel_pos_bias.bias_table"),
        (".attention.qkv.", ".attn.qkv."),
        (".attention.out.", ".attn.proj."),
        (".norm_query.", ".norm_q."),
        (".norm_key.", ".norm_kv."),
        (".query.", ".q_proj."),
        (".key.", ".k_proj."),
        (".value.", ".v_proj."),
        (".out.", ".out_proj."),
        (".mlp.0.", ".mlp.fc1."),
        (".mlp.2.", ".mlp.fc2."),
    )
    theirs = {}
    for name, tensor in network.state_dict().items():
        norms = (".norm_mlp.", ".norm_ffn." if "cross" in name else ".norm2.")
        for ours, other in (*renames, norms):
            name = name.replace(ours, other)
        if "blocks." in name:
            name = name.replace(".norm.", ".norm1.")
        theirs[name] = tensor.view(-1, 1, 1).clone() if name.endswith(".beta") else tensor.contiguous().clone()
    return theirs


def checkpoint(path: Path, **extra: object) -> None:
    """A Lightning checkpoint as the authors publish it, small."""
    state = {f"model.{name}": tensor for name, tensor in their_tensors(released()).items()}
    sizes = SMALL.model_dump(exclude={"kind", "wind_bias", "coordinates"})
    content = {
        "state_dict": state | {"criterion.sobel_x": torch.zeros(3, 3), "criterion.sobel_y": torch.zeros(3, 3)},
        "hyper_parameters": {"config": {"model": sizes, "training": {"lr": 1e-4}}},
        "optimizer_states": [{"state": {0: {"exp_avg": torch.zeros(5)}}}],
        **extra,
    }
    torch.save(content, path)
