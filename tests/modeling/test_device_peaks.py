"""Device names as drivers print them find their row; the unknown stay unknown."""

import pytest

from electra_tf.modeling.device_peaks import PEAKS, peak_flops, peak_fraction


@pytest.mark.parametrize(("name", "precision", "expected"), [
    ("NVIDIA H100 80GB HBM3", "bfloat16", 989.4e12),
    ("NVIDIA H100 PCIe", "bfloat16", 756e12),
    ("NVIDIA H200", "float16", 989.4e12),
    ("NVIDIA A100-SXM4-40GB", "float32", 156e12),
    ("NVIDIA A10G", "bfloat16", None),
    ("NVIDIA A10", "bfloat16", 125e12),
    ("NVIDIA L4", "bfloat16", 121e12),
    ("NVIDIA L40S", "bfloat16", 362e12),
    ("NVIDIA GeForce RTX 4090", "float16", 165.2e12),
    ("Tesla T4", "float16", 65e12),
    ("Tesla T4", "bfloat16", None),
    ("Tesla V100-SXM2-16GB", "float16", 125e12),
    ("Tesla V100-PCIE-16GB", "float16", 112e12),
    ("TPU v4", "bfloat16", 275e12),
    ("TPU_v5e", "bfloat16", 197e12),
    ("", "float32", None),
    ("Intel(R) Xeon(R) Platinum 8481C CPU", "float32", None),
])
def test_a_device_name_finds_its_peak(name, precision, expected):
    assert peak_flops(name, precision) == expected


def test_every_row_can_be_found_by_its_own_name():
    for name, peak in PEAKS.items():
        assert peak_flops(name, "float32") == peak.float32 * 1e12


def test_an_unknown_precision_is_refused():
    with pytest.raises(ValueError, match="Received: 'fp8'"):
        peak_flops("Tesla T4", "fp8")


def test_the_fraction_is_flops_done_over_the_peak():
    assert peak_fraction(1e6, 5e7, 1e14) == 0.5
    assert peak_fraction(1e6, 5e7, None) is None
