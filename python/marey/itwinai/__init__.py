"""Files, commands and MLflow stores of itwinai.

    marey generate-scalability-report, marey generate-py-spy-report     commands of itwinai
    marey scale, marey report --energy, marey breakdown --legacy        files of itwinai 0.2 to 0.3.3, MLflow stores

This package converts CSV files and stores to the measurements that `marey scale` reads, and recordings to itwinai's CSV
files. marey itself does the analyses. `python -m marey.itwinai --help` lists the commands, which the program `marey`
runs.
"""

from marey.itwinai._averages import averages, fractions, fractions_of_files
from marey.itwinai._energy import energy_of_files
from marey.itwinai._files import Failure
from marey.itwinai._measurements import write_measurements
from marey.itwinai._power import write_power

__all__ = [
    "Failure",
    "averages",
    "energy_of_files",
    "fractions",
    "fractions_of_files",
    "write_measurements",
    "write_power",
]
