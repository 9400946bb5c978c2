"""NVIDIA cards as XLA's compiler is told of them where there are none; NVIDIA's data sheets."""

import dataclasses


@dataclasses.dataclass(frozen=True, kw_only=True)
class GpuTarget:
    """A card. Limits that all of these cards share are in `configuration`."""

    kind: str
    """As its driver names it."""
    compute_capability: int
    """The major number; the minor one is 0."""
    multiprocessors: int
    float32_units: int
    """Of a multiprocessor."""
    gigahertz: float
    memory: int
    """Bytes."""
    bandwidth: int
    """Bytes a second."""
    l2_cache: int
    """Bytes."""
    shared_memory: int
    """Bytes of a multiprocessor, one KiB of which is the system's."""

    def configuration(self) -> str:
        """Returns a GpuTargetConfigProto of XLA's, as text."""
        return f"""
            platform_name: "CUDA"
            device_description_str: "{self.kind}"
            dnn_version_info {{ major: 9 minor: 10 }}
            gpu_device_info {{
              cuda_compute_capability {{ major: {self.compute_capability} }}
              core_count: {self.multiprocessors}
              fpus_per_core: {self.float32_units}
              clock_rate_ghz: {self.gigahertz}
              device_memory_size: {self.memory}
              memory_bandwidth: {self.bandwidth}
              l2_cache_size: {self.l2_cache}
              shared_memory_per_core: {self.shared_memory}
              shared_memory_per_block_optin: {self.shared_memory - 1024}
              shared_memory_per_block: 49152
              threads_per_block_limit: 1024 threads_per_core_limit: 2048 threads_per_warp: 32
              registers_per_core_limit: 65536 registers_per_block_limit: 65536
              block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535
            }}"""


_HOPPER = {"compute_capability": 9, "multiprocessors": 132, "float32_units": 128,
           "gigahertz": 1.98, "l2_cache": 50 * 2**20, "shared_memory": 228 * 2**10}
TARGETS = {
    "a100": GpuTarget(kind="NVIDIA A100-SXM4-80GB", compute_capability=8, multiprocessors=108,
                      float32_units=64, gigahertz=1.41, memory=80 * 2**30,
                      bandwidth=2_039_000_000_000, l2_cache=40 * 2**20,
                      shared_memory=164 * 2**10),
    "h100": GpuTarget(kind="NVIDIA H100 80GB HBM3", memory=80 * 2**30,
                      bandwidth=3_352_000_000_000, **_HOPPER),
    "h200": GpuTarget(kind="NVIDIA H200", memory=141 * 10**9, bandwidth=4_800_000_000_000,
                      **_HOPPER),
}
"""By the name that stands before the colon of a topology."""
MOST = 8
"""Cards of a machine."""
