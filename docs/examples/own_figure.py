"""A figure of your own: the bias of every method by lead, from the scores that `cranpm verify` wrote.

Put this module into a package whose entry points name it in the group `cranpm.plugins`. Then `cranpm figure bias
--verified FOLDER --out bias.png` draws it, and `cranpm figure --all` does too.
"""

from cranpm.views.figures.catalogue import VERIFIED, register_figure
from cranpm.views.figures.scores_data import ScoresData
from cranpm.views.figures.sheet import sheet


@register_figure("bias", VERIFIED, shows="bias of every method by lead")
def bias(inputs):
    """Lines of the mean of forecast - truth (ug m-3) over the leads."""
    found = ScoresData.of(inputs)
    figure = sheet(6, 4, "Bias of daily PM$_{2.5}$ by lead", found.notes())
    axes = figure.subplots()
    for name in found.names:
        values = [found.scores.of(name, lead).fields["1 km"]["all"].bias for lead in found.leads]
        axes.plot(found.leads, values, label=name, **found.lines[name].marked)
    axes.set(xlabel="days ahead", ylabel="bias (µg m$^{-3}$)")
    axes.legend()
    return figure
