"""Two passes as two runs: the first dumps, the second compares. `old` compares both with what is in FOLDER.

python dumper_compare.py FOLDER [old]
"""

import sys

import torch
from accvlab.optim_test_tools import TensorDumper

is_old = "old" in sys.argv
dumper = TensorDumper()
dumper.enable(sys.argv[1])

for i in range(2):
    shift = 0.0 if is_old else 0.1 * i
    tensor1 = torch.arange(12.0).reshape(3, 4) / 7 + shift
    tensor2 = torch.arange(12.0).reshape(4, 3) / 11 - shift
    tensor3 = torch.arange(4.0) / 13

    dumper.add_tensor_data("tensor1", tensor1, TensorDumper.Type.JSON, None)
    third = "tensor4" if i == 1 and not is_old else "tensor3"
    others = {"tensor2": tensor2, third: tensor3}
    dumper.add_tensor_data("other_tensors", others, TensorDumper.Type.BINARY, None)

    tensor1.requires_grad = True
    dumper.add_grad_data("tensor1", tensor1, TensorDumper.Type.JSON, None)
    summed = torch.sum(tensor1 * tensor1)

    dumper.set_dump_type_for_all(TensorDumper.Type.JSON)
    dumper.set_gradients([summed])
    if i == 0 and not is_old:
        dumper.dump()
    else:
        dumper.compare_to_dumped_data(
            num_errors_per_tensor_to_show=3,
            as_warning=True,
            allow_missing_data_in_current=False,
            **({"eps_numerical_data": 0.0} if is_old else {}),
        )
    dumper.reset_dump_count()
