"""Reads the files of weights in Hugging Face's directories, by PyTorch's names.

Kernels are [out, in]. The weights are in the first of `WEIGHTS_FILES` that exists.
"""

import glob
import io
import re
import shlex
from collections.abc import Iterable
from pickle import UnpicklingError
from typing import Any

import numpy as np
import tensorflow as tf
from safetensors import SafetensorError, deserialize

from electra_tf.checkpoints.checkpoint_files import first_five
from electra_tf.core import strict_json
from electra_tf.core.errors import UserError, note_once, shown
from electra_tf.core.storage import MIB, Path, read_bytes

WEIGHTS_FILE = "model.safetensors"
WEIGHTS_FILES = {
    WEIGHTS_FILE: "", "model.safetensors.index.json": "model-*-of-*.safetensors",
    "tf_model.h5": "", "tf_model.h5.index.json": "tf_model-*-of-*.h5",
    "pytorch_model.bin": "", "pytorch_model.bin.index.json": "pytorch_model-*-of-*.bin"}
"""File of weights, or an index -> pattern of the files that it names."""
ADAPTER_FILE = "adapter_config.json"
_MAX_WEIGHT_BYTES = 16 << 30  # Read into memory; the file of ELECTRA-Large has 1.3 GB.
_TYPES = {"F64": np.float64, "F32": np.float32, "F16": np.float16,
          "BF16": tf.bfloat16.as_numpy_dtype, "I64": np.int64}
_SEGMENTS = "embeddings.token_type_embeddings.weight"
"""End of the name of a weight that every encoder has."""


class _Index(strict_json.OpenObject):
    weight_map: dict[str, str]  # Weight -> name of its file.


def weights_file(directory: Path) -> Path:
    """Returns the file with the weights of a network, or its index; `UserError` without one."""
    for name in WEIGHTS_FILES:
        if (directory / name).exists():
            return directory / name
    if (directory / ADAPTER_FILE).exists():
        adapter = strict_json.read(directory / ADAPTER_FILE, dict[str, Any])
        raise UserError(
            f"{directory} holds an adapter ({adapter.get('peft_type')}) without its base model "
            f"{adapter.get('base_model_name_or_path')}. Load both with peft, and merge them: "
            "model.merge_and_unload().save_pretrained(DIR).")
    raise UserError(f"{directory} holds none of {', '.join(WEIGHTS_FILES)}; write weights with "
                    "model.save_pretrained().")


def read_weights(directory: Path) -> dict[str, np.ndarray]:
    """Returns float32, float64, float16 or bfloat16 arrays by PyTorch's current names.

    Leaves out position ids from 0, a buffer that old releases saved, and what precedes all names.
    Refuses damaged files, other types, and two different weights of one name.
    """
    # Names of all files; TensorFlow 1's gamma and beta are PyTorch's weight and bias.
    source = weights_file(directory)
    if (directory / ADAPTER_FILE).exists():
        note_once(f"{directory / ADAPTER_FILE}: the adapter is not applied to {source.name}.")
    tensors = [(re.sub(r"LayerNorm\.gamma$", "LayerNorm.weight",
                       re.sub(r"LayerNorm\.beta$", "LayerNorm.bias", name)), value)
               for path in _parts(source) for name, value in _read_file(path)]
    # Every name once, without what precedes all of them; shared weights repeat a value.
    prefix = _common_prefix([name for name, _ in tensors], source)
    weights: dict[str, np.ndarray] = {}
    for name, value in tensors:
        if name.endswith("position_ids") and np.array_equal(value.flat, np.arange(value.size)):
            continue
        if value.dtype == np.int64 or value.dtype not in _TYPES.values():
            raise UserError(f"{source}: {shown(name)} is of type {value.dtype}; weights must be "
                            "floating-point numbers, and position_ids count from 0.")
        stored = weights.setdefault(name.removeprefix(prefix), value)
        if stored is not value and not np.array_equal(stored, value):
            raise UserError(f"{source} holds two different weights {shown(name)}; write the model "
                            "again with model.save_pretrained().")
    return weights


def _parts(source: Path) -> list[Path]:
    """Returns the files with the weights: the file itself, or all that an index names."""
    if not (pattern := WEIGHTS_FILES[source.name]):
        return [source]
    names = {*strict_json.read(source, _Index, max_bytes=16 * MIB).weight_map.values()}
    files = {path.name for path in source.parent.glob(pattern)}
    if names != files:
        raise UserError(f"{source} and the files beside it differ. Missing: "
                        f"{first_five(sorted(names - files)) or 'none'}; not in the index: "
                        f"{first_five(sorted(files - names)) or 'none'}. Copy the whole directory.")
    return [source.parent / name for name in sorted(names)]


def _common_prefix(names: list[str], source: Path) -> str:
    """Returns what precedes an encoder's own names or "electra." and "bert."; a note says so."""
    # Each encoder has one table of segments, whose name begins with the prefix.
    prefixes = {re.sub(r"\b(electra|bert|roformer)\.$", "", name.removesuffix(_SEGMENTS))
                for name in names if name.endswith(_SEGMENTS)}
    if "" in prefixes or not prefixes:
        return ""
    if len(prefixes) > 1:
        raise UserError(f"{source} holds several encoders: {first_five(sorted(prefixes))}; save "
                        "one of them with save_pretrained().")
    note_once(f"{source}: the prefix {min(prefixes)!r} of the names of weights is left out.")
    return min(prefixes)


def _read_file(path: Path) -> Iterable[tuple[str, np.ndarray]]:
    """Returns the names and values of one file; Keras' are renamed to PyTorch's."""
    try:
        if path.suffix == ".h5":
            return _read_keras(path)
        if path.suffix == ".bin":
            return _read_pickled(path)
        return [(name, np.frombuffer(tensor["data"], _TYPES[tensor["dtype"]]).reshape(
            tensor["shape"])) for name, tensor in deserialize(read_bytes(path, _MAX_WEIGHT_BYTES))]
    except SafetensorError as error:
        raise UserError(f"{path} is damaged: {error}.") from error
    except KeyError as error:
        raise UserError(f"{path}: weights of type {error} can't be read; save them as float32: "
                        "model.float().save_pretrained(...).") from error


def _read_keras(path: Path) -> Iterable[tuple[str, np.ndarray]]:
    """Returns the weights of Keras' HDF5 format, kernels transposed; shared ones are repeated."""
    import h5py  # Only these files need it.

    content, weights = io.BytesIO(read_bytes(path, _MAX_WEIGHT_BYTES)), []
    try:
        with h5py.File(content, "r") as file:
            # HDF5 has a group for each layer: tf_electra/x/layer_._3/dense/kernel:0 ->
            # x.layer.3.dense.weight.
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
                pytorch_leaf = "weight" if leaf in ("kernel", "embeddings") else leaf
                pytorch_name = f"{stem.replace('layer_._', 'layer/')}/{pytorch_leaf}"
                array = value[()]
                weights.append((pytorch_name.replace("/", "."),
                                array.T if leaf == "kernel" else array))
    except (OSError, KeyError, TypeError, AttributeError, RuntimeError) as error:
        raise UserError(f"{path} is damaged, or no weights of Keras: {error}.") from error
    return weights


def _read_pickled(path: Path) -> Iterable[tuple[str, np.ndarray]]:
    """Returns the weights of torch.save, through PyTorch's reader that runs no code."""
    try:
        import torch
    except ModuleNotFoundError as error:
        # The command converts all parts of the file.
        files = f"{glob.escape(str(path.parent))}/{re.sub('-[0-9]+-of-[0-9]+', '*', path.name)}"
        program = ("import glob, torch, safetensors.torch as s; s.save_file({n: "
                   f"t.clone().contiguous() for p in glob.glob({files!r}) for n, t in torch.load("
                   "p, map_location='cpu', weights_only=True).items()}, "
                   f"{str(path.parent / WEIGHTS_FILE)!r})")
        raise UserError(
            f"{path} is pickled and needs PyTorch: pip install torch. Or convert the file where "
            f"PyTorch is installed: python -c {shlex.quote(program)}") from error
    content = io.BytesIO(read_bytes(path, _MAX_WEIGHT_BYTES))
    try:
        tensors = torch.load(content, map_location="cpu", weights_only=True)
        return [(name, (value.detach().float() if value.is_floating_point() else value).numpy())
                for name, value in tensors.items()]
    except (UnpicklingError, RuntimeError, EOFError, KeyError, ValueError,
            AttributeError) as error:
        raise UserError(f"{path} is damaged, or not a table of weights: {error}.") from error
