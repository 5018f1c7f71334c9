"""The picture and the health table of one subject, as `msalint probe` adds them to its report."""

from __future__ import annotations

import torch
from torch import nn

from msalint.runtime.health import head_health, health_table
from msalint.runtime.plots import PlotsMissing, draw_attention
from msalint.runtime.recorder import record_attention
from msalint.runtime.subject import Subject
from msalint.runtime.target import TargetError


def show(subject: Subject, plot: str | None, health: bool) -> str:
    """Run the subject once, write its picture to `plot` and give the text to print. Raises `TargetError`."""
    module = subject.module or nn.Module()
    with torch.no_grad(), record_attention(module) as attentions:
        subject.call()
    if not attentions:
        raise TargetError(f"{subject.name} shows no attention weights")
    names = [attention.module or subject.name for attention in attentions]
    text = ""
    if health:
        text += "\n" + health_table(head_health(attentions), names) + "\n"
    if plot is not None:
        try:
            text += f"\nattention weights of the first sample: {draw_attention(attentions, plot, names=names)}\n"
        except PlotsMissing as error:
            raise TargetError(str(error)) from error
        except (OSError, ValueError) as error:
            raise TargetError(f"the picture can't be written to {plot}: {error}") from error
    return text
