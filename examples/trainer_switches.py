"""A trainer whose attributes are its switches, like itwinai's TorchTrainer, with two decorators.

    python examples/trainer_switches.py [FOLDER]

`measure_epoch_time` and `measure_gpu_data` are read when train() is called. Without a GPU, a message says so.
"""

import sys
import time

import marey


class Trainer:
    """Settings, and a loop of three epochs."""

    def __init__(self, output_dir: str) -> None:
        self.measure_epoch_time = True
        self.measure_gpu_data = True
        self.enable_torch_profiling = False
        self.output_dir = output_dir
        self.run_name = "switches"

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    @marey.profile_torch_trainer
    @marey.measure_gpu_utilization
    def train(self) -> None:
        monitor = marey.current_monitor()
        for epoch in range(3):
            self.set_epoch(epoch)
            time.sleep(0.02)
            if monitor is not None:  # None if all switches are off
                monitor.log_metrics({"loss": 1 / (epoch + 1)}, step=epoch)


if __name__ == "__main__":
    Trainer(sys.argv[1] if len(sys.argv) > 1 else "switches-runs").train()
