"""Reads the files of weights in Hugging Face's directories, by PyTorch's names.

Kernels are [out, in]. The weights are in the first of `WEIGHTS_FILES` that exists.
"""

import io
import re
import shlex
from pickle import UnpicklingError

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load

from electra_tf.platform.errors import UserError, shown
from electra_tf.platform.storage import Path, read_bytes, read_error

WEIGHTS_FILE, KERAS_FILE, PICKLED_FILE = WEIGHTS_FILES = (
    "model.safetensors", "tf_model.h5", "pytorch_model.bin")
_MAX_WEIGHT_BYTES = 16 << 30  # Read into memory; the file of ELECTRA-Large has 1.3 GB.


def weights_file(directory: Path) -> Path:
    """Returns the file with the weights of a network; `UserError` if there is none."""
    for name in WEIGHTS_FILES:
        if (directory / name).exists():
            return directory / name
    raise UserError(f"{directory} holds none of {', '.join(WEIGHTS_FILES)}; write weights with "
                    "model.save_pretrained(..., max_shard_size='100GB').")


def read_weights(directory: Path) -> dict[str, np.ndarray]:
    """Returns float32, float64 or float16 arrays by PyTorch's current names.

    Leaves out the position ids, a buffer that old releases saved. Refuses damaged files.
    """
    path = weights_file(directory)
    try:
        if path.name == KERAS_FILE:
            weights = _read_keras(path)
        elif path.name == PICKLED_FILE:
            weights = _read_pickled(path)
        else:
            weights = load(read_bytes(path, _MAX_WEIGHT_BYTES))
    except OSError as error:
        raise read_error(path, error) from error
    except SafetensorError as error:
        raise UserError(f"{path} is damaged: {error}.") from error
    except KeyError as error:  # NumPy has no bfloat16 and no 8-bit floats.
        raise UserError(f"{path}: weights of type {error} can't be read; save them as float32: "
                        "model.float().save_pretrained(...).") from error
    renamed = {}
    for name, value in weights.items():
        if name.endswith("position_ids"):
            continue
        if value.dtype not in (np.float32, np.float64, np.float16):
            raise UserError(f"{path}: {shown(name)} is of type {value.dtype}; weights are float32.")
        renamed[re.sub(r"LayerNorm\.gamma$", "LayerNorm.weight",
                       re.sub(r"LayerNorm\.beta$", "LayerNorm.bias", name))] = value
    return renamed


def _read_keras(path: Path) -> dict[str, np.ndarray]:
    """Returns the weights of Keras' HDF5 format; layers that share a weight repeat it.

    Kernels are transposed.
    """
    import h5py  # Only these files need it.

    content, weights = io.BytesIO(read_bytes(path, _MAX_WEIGHT_BYTES)), {}
    try:
        with h5py.File(content, "r") as file:
            groups = [file[name] for name in file.attrs["layer_names"]]
            for name, value in [(name, group[name]) for group in groups
                                for name in group.attrs["weight_names"]]:
                name = name.decode() if isinstance(name, bytes) else name
                # A file of a few bytes can declare any size; external data is another file's.
                if (value.external is not None or value.is_virtual
                        or value.id.get_storage_size() < value.nbytes):
                    raise UserError(f"{path}: {shown(name)} is not stored whole in the file.")
                stem, leaf = re.sub(
                    "^tf_(electra|bert)[^/]*/", "", name.removesuffix(":0")).rsplit("/", 1)
                pytorch_leaf = {"kernel": "weight", "embeddings": "weight", "gamma": "weight",
                                "beta": "bias"}.get(leaf, leaf)
                pytorch_name = f"{stem.replace('layer_._', 'layer/')}/{pytorch_leaf}"
                array = value[()]
                weights[pytorch_name.replace("/", ".")] = array.T if leaf == "kernel" else array
    except (OSError, KeyError, TypeError, AttributeError, RuntimeError) as error:
        raise UserError(f"{path} is damaged, or no weights of Keras: {error}.") from error
    return weights


def _read_pickled(path: Path) -> dict[str, np.ndarray]:
    """Returns the weights of torch.save, through PyTorch's reader that runs no code."""
    try:
        import torch
    except ModuleNotFoundError as error:
        program = ("import torch, safetensors.torch as s; s.save_file({n: t.clone().contiguous() "
                   f"for n, t in torch.load({str(path)!r}, map_location='cpu', weights_only=True)"
                   f".items()}}, {str(path.parent / WEIGHTS_FILE)!r})")
        raise UserError(
            f"{path} is pickled and needs PyTorch: pip install torch. Or convert the file where "
            f"PyTorch is installed: python -c {shlex.quote(program)}") from error
    content = io.BytesIO(read_bytes(path, _MAX_WEIGHT_BYTES))
    try:
        tensors = torch.load(content, map_location="cpu", weights_only=True)
        return {name: value.detach().float().numpy() for name, value in tensors.items()}
    except (UnpicklingError, RuntimeError, EOFError, KeyError, ValueError,
            AttributeError) as error:
        raise UserError(f"{path} is damaged, or not a table of weights: {error}.") from error
