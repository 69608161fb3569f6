"""`onelayer generate`: text from a folder that `onelayer language` wrote."""

from typing import Annotated

import typer

from ...common.errors import InputError
from . import options as given
from .show import print_json


def generate(
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="A folder that `language` wrote.")],
    prompt: Annotated[str, typer.Option(metavar="TEXT", help="How the text begins.")] = "",
    length: Annotated[int, typer.Option(min=0, help="How many tokens to add.")] = 200,
    temperature: Annotated[
        float, typer.Option(help="1: the model's distribution; lower: likelier tokens; 0: the likeliest one.")
    ] = 1.0,
    seed: given.Seed = 0,
    json: given.Json = False,
) -> int:
    """Write text, token by token, as a language model predicts it."""
    import onelayer as ol

    layer = ol.load(folder)
    if not isinstance(layer, ol.LanguageModel):
        raise InputError("a folder that `onelayer language` wrote", "a layer of another kind", "choose another folder")
    text = layer.generate(prompt, length, temperature, seed)
    if json:
        print_json({"prompt": prompt, "text": text, "tokens": length, "temperature": temperature, "seed": seed})
    else:
        print(text)
    return 0
