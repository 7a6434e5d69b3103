"""The model card: what a person reads before using weights."""

from cranpm.network import ForecastNetwork
from cranpm.network.cost import size
from cranpm.weights.card import Card


def readme(card: Card, network: ForecastNetwork) -> str:
    """README.md of a folder of weights, with the front matter that model hubs read."""
    channels = "\n".join(
        f"| {name} | {unit} | {mean:g} | {spread:g} |"
        for (name, unit), mean, spread in zip(card.channels, card.scales.mean, card.scales.spread, strict=True)
    )
    return f"""---
license: {card.licence}
library_name: cranpm
tags: [air-quality, pm2.5, weather]
---

# PM2.5 forecasts made at {network.settings.resolution}: {card.network.kind}, {size(network) / 1e6:.3g} M parameters

{card.about or "No note was written about these weights."}

| | |
|---|---|
| forecasts | daily mean PM2.5, ug m-3, {", ".join(f"T+{lead}" for lead in card.leads)} |
| trained on | {card.data or "not recorded"} |
| source of those data | {card.source or "not recorded"} |
| trained where | {card.domain or "not recorded"} |
| days ahead | {card.days_ahead} |
| grids | coarse {card.coarse_step} degrees, fine {card.fine_step} degrees |
| PM2.5 inside the network | (x - {card.scales.pm25_mean:g}) / {card.scales.pm25_spread:g} |
| licence | {card.licence} |
| written by | {card.software} |

## Use

```python
from cranpm.weights import load_weights

weights = load_weights("this folder")  # refuses a changed byte
```

## Coarse channels, of today and of yesterday

| channel | unit | mean | spread |
|---|---|---|---|
{channels}

All settings of the network are in `settings.json`; `SHA256SUMS` holds the checksum of every file.
"""
