"""Put the best weights of a run into the package, with a model card that says how to make them and what they are worth.

cranpm simulate --domain europe --days 2020-01-01..2021-02-28 europe.archive
cranpm train small-europe.toml --archive europe.archive --out runs/europe
python tools/ship_weights.py runs/europe
"""

import json
import shutil
import sys
from pathlib import Path

from cranpm.weights import load_weights, save_weights
from cranpm.weights.folder import SHIPPED


def about(run: Path) -> str:
    """Recipe, scores and limits, from what the run left."""
    settings, test = (json.loads((run / f"{name}.json").read_text()) for name in ("settings", "test"))
    best = "\n".join(f"- {line}" for line in load_weights(run / "best").card.about.splitlines())
    scores = "\n".join(
        f"- T+{lead}: RMSE {test[f'rmse_t{lead}']:.2f} ug m-3, persistence {test[f'rmse_persistence_t{lead}']:.2f}, "
        f"damped persistence {test[f'rmse_damped_t{lead}']:.2f}: "
        f"skill {100 * test[f'skill_persistence_t{lead}']:+.1f} % and {100 * test[f'skill_damped_t{lead}']:+.1f} %, "
        "on test days."
        for lead in settings["network"]["leads"]
    )
    shape = settings["network"]["fine"]["shape"][0]
    return f"""**Trained on simulated days of an invented atmosphere over Europe. Not for real decisions.**

{best}
{scores}

Scores come from {settings["scores"]["tiles"]} tiles of {shape} x {shape} pixels on each of up to
{settings["scores"]["days"]} start days: validation {settings["splits"]["validation"]}, test {test["days"]}.
The validation days chose the epoch.

Made by, in this order:

```sh
cranpm simulate --domain europe --days 2020-01-01..2021-02-28 europe.archive
cranpm train small-europe.toml --archive europe.archive --out runs/europe
python tools/ship_weights.py runs/europe
```

{settings["optimiser"]["epochs"]} epochs, {settings["samples"]["days"]} days x {settings["samples"]["tiles"]} tiles a
step, seed {settings["samples"]["seed"]}, {settings["machine"]["precision"]}.

Limits: one simulated year of training; winters and summers beyond it are unseen. Where the air is much dirtier than
in the simulated Europe nothing is known of it. An archive of real days refuses these weights unless told otherwise."""


def main() -> None:
    run = Path(sys.argv[1])
    weights = load_weights(run / "best")
    if weights.card.network.kind != "cran-pm" or weights.card.source != "simulation":
        raise SystemExit(f"expected CRAN-PM trained on simulated days, found {weights.card.network.kind}")
    card = weights.card.model_copy(update={"about": about(run)})
    shutil.rmtree(SHIPPED, ignore_errors=True)
    save_weights(SHIPPED, weights.network, card)
    print(SHIPPED)


if __name__ == "__main__":
    main()
