"""The runtime tests share `attention_modules`, and run torch on one thread."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

try:
    import torch
except ImportError:
    pass
else:
    torch.set_num_threads(1)
