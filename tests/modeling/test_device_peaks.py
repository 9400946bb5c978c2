"""Device names as drivers print them find their row; the unknown stay unknown."""

from electra_tf.modeling.device_peaks import PEAKS, peak_flops

TERAFLOPS = {
    ("NVIDIA H100 80GB HBM3", "bfloat16"): 989.4, ("NVIDIA H100 PCIe", "bfloat16"): 756.0,
    ("NVIDIA H200", "float16"): 989.4, ("NVIDIA A100-SXM4-40GB", "float32"): 156.0,
    ("NVIDIA A10G", "bfloat16"): None, ("NVIDIA A10", "bfloat16"): 125.0,
    ("NVIDIA L4", "bfloat16"): 121.0, ("NVIDIA L40S", "bfloat16"): 362.0,
    ("Tesla T4", "float16"): 65.0, ("Tesla T4", "bfloat16"): None,
    ("Tesla V100-SXM2-16GB", "float16"): 125.0, ("Tesla V100-PCIE-16GB", "float16"): 112.0,
    ("TPU_v5e", "bfloat16"): 197.0, ("", "float32"): None,
    ("Intel(R) Xeon(R) Platinum 8481C CPU", "float32"): None}


def test_a_device_name_finds_its_peak_and_every_row_can_be_found():
    found = {case: peak_flops(*case) for case in TERAFLOPS}
    assert found == {case: rate and rate * 1e12 for case, rate in TERAFLOPS.items()}
    assert not [name for name, peak in PEAKS.items()
                if peak_flops(name, "float32") != peak[0] * 1e12]
