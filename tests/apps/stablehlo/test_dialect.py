"""What TensorFlow writes becomes StableHLO and nothing else."""

import pytest
from tensorflow.compiler.mlir.stablehlo import stablehlo

from electra_tf.apps.stablehlo import dialect
from electra_tf.platform.errors import UserError

MODULE = """\
#loc1 = loc("a \\"name\\" (of)")
module @a_inference__1.2 attributes {mhlo.input_output_alias = [{alias = {kind = "may_alias", \
parameter_index = array<i64>, parameter_number = 1 : i64}, output_index = array<i64: 0>}], \
mhlo.is_dynamic = false} {
  func.func @main(%arg0: tensor<2x2xf32> loc("XLA_Args"), %arg1: tensor<2x2xf32> \
loc("x;(y)")) -> tensor<2x2xf32> {
    %0 = stablehlo.dot %arg0, %arg1, precision = [DEFAULT, DEFAULT] \
{mhlo.frontend_attributes = {grad_x = "false", grad_y = "false"}} : (tensor<2x2xf32>, \
tensor<2x2xf32>) -> tensor<2x2xf32> loc(#loc2)
    %1 = mhlo.erf %0 : tensor<2x2xf32> loc(fused["a", #loc1])
    %2 = mhlo.copy %1 : tensor<2x2xf32> loc(#loc)
    return %2 : tensor<2x2xf32> loc(#loc)
  } loc(#loc)
} loc(#loc)
#loc2 = loc(fused[#loc1, #loc1])
"""


def test_a_module_becomes_portable():
    found = dialect.portable(MODULE)
    assert found.startswith(b"ML\xefR") and b"StableHLO_v" in found[:20]  # MLIR's byte code.
    assert b"frontend_attributes" not in found and b"mhlo.copy" not in found
    assert b"mhlo.erf" in found and b"reshape_v1" in found and b"custom_call_v1" in found
    assert stablehlo.deserialize_portable_artifact_str(found)


def test_new_values_are_found():
    assert dialect.updates(MODULE) == {1: 0}


def test_a_foreign_op_is_named():
    with pytest.raises(UserError, match=r"the op mhlo\.topk, which StableHLO doesn't have"):
        dialect.portable(MODULE.replace("mhlo.copy", "mhlo.topk"))
