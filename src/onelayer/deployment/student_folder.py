"""The folder of a distilled student of token sequences, without pickle.

student.safetensors   the weights; the sizes of the student in the metadata
distillation.json     how it was distilled and how faithful it is to its teacher (observed)
"""

import json
from pathlib import Path
from typing import Any

from safetensors import safe_open
from safetensors.torch import save as weights_file

from ..common.atomic import write_folder
from ..common.errors import InputError
from ..model.token_encoder import TokenEncoder
from .earlier_model import STUDENT_FILES as FILES
from .earlier_model import require_place, stale_files


def save_student(student: TokenEncoder, about: dict[str, Any], folder: Path, overwrite: bool = False) -> Path:
    """Write the folder; with `overwrite` an earlier model in it is replaced, and nothing else."""
    require_place(folder, overwrite)
    tensors = {name: t.detach().cpu().contiguous() for name, t in student.state_dict().items()}
    weights = weights_file(tensors, metadata={"student": json.dumps(student.sizes)})
    files = {FILES[0]: weights, FILES[1]: json.dumps(about, indent=1).encode()}
    return write_folder(folder, files, stale_files(folder, files))


def load_student(folder: Path) -> TokenEncoder:
    """The student of a folder, with the very weights that were saved."""
    path = folder / FILES[0]
    try:
        with safe_open(path, framework="pt") as file:
            sizes = json.loads((file.metadata() or {})["student"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dictionary)
        student = TokenEncoder(**sizes)
        student.load_state_dict(tensors, assign=True)
    except Exception as error:  # whatever safetensors, JSON or torch say of a file that holds no student
        found = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise InputError(f"a student in {path}", found, "name a folder that `distill` wrote") from None
    return student.eval()
