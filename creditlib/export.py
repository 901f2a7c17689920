"""Write a trained model as a plain folder that `from_pretrained` loads.

    python -m creditlib.export model.path=runs/x out=my-model              # full weights, or an adapter
    python -m creditlib.export model.path=runs/x out=my-model merge=true   # the adapter folded into its base

The numbers are those of the checkpoint, in its own precision; model.dtype and model.lora play no part.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

from creditlib import cli
from creditlib.config import ExportConfig
from creditlib.types import CreditlibError


def export(config: ExportConfig) -> None:
    """Load `config.model` and save it, with its tokenizer, at `config.out`."""
    from safetensors import SafetensorError

    from creditlib import assemble
    from creditlib.policy.load import load_saved
    from creditlib.trainer.files import make_folder

    assemble.quiet_libraries()
    target = Path(config.out)
    make_folder(target.parent, f"out={target}")  # before the model, which takes long
    if os.path.lexists(target):
        raise CreditlibError(f"out={target} exists already: choose another folder")
    policy = load_saved(config.model)
    model = policy.model
    if config.merge:
        if not policy.is_adapter:
            raise CreditlibError(f"merge=true: {policy.source} has no adapter to merge; leave merge out")
        model = model.merge_and_unload()
    scratch = Path(tempfile.mkdtemp(prefix=".partial-", dir=target.parent))
    try:
        model.save_pretrained(scratch)
        policy.tokenizer.save_pretrained(scratch)
        scratch.chmod(0o755)
        os.replace(scratch, target)
    except (OSError, SafetensorError) as error:  # each library has its own for a full disk
        raise CreditlibError(
            f"could not write out={target}: {error}. Make room there or choose another folder"
        ) from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    print(f"saved {policy.source} at {target}")


if __name__ == "__main__":
    sys.exit(cli.main(export, schema=ExportConfig, config_name="export", about=__doc__ or ""))
