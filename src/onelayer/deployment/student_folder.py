"""The folder of a distilled student of token sequences, without pickle.

student.safetensors   the weights; the sizes of the student in the metadata
distillation.json     how it was distilled and how faithful it is to its teacher (observed)
"""

import json
from pathlib import Path
from typing import Any

from safetensors import safe_open
from safetensors.torch import save_file

from ..common.atomic import fresh_folder, umask
from ..common.errors import InputError
from ..model.token_encoder import TokenEncoder

FILES = ("student.safetensors", "distillation.json")


def save_student(student: TokenEncoder, about: dict[str, Any], folder: Path) -> Path:
    """Write the folder, which must not exist yet."""
    if folder.exists():
        raise InputError(f"a new folder {folder.name}", "something has that name", "choose another name")
    tensors = {name: t.detach().cpu().contiguous() for name, t in student.state_dict().items()}
    with fresh_folder(folder) as fresh:
        save_file(tensors, fresh / FILES[0], metadata={"student": json.dumps(student.sizes)})
        (fresh / FILES[0]).chmod(0o666 & ~umask())
        (fresh / FILES[1]).write_text(json.dumps(about, indent=1))
    return folder


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
