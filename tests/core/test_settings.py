import pytest

from cranpm.core.errors import CranpmError
from cranpm.core.settings import load
from cranpm.simulate.job import SimulationJob


@pytest.fixture
def toml(tmp_path):
    path = tmp_path / "job.toml"
    path.write_text(
        'days = "2021-01-01..2021-01-03"\n[domain]\nnorth = 50\nwest = 4\nsouth = 42\neast = 16\n'
        "[simulation]\nseed = 5\n"
    )
    return path


def test_file_then_arguments_then_overrides(toml):
    job = load(SimulationJob, toml, ["simulation.seed=7", "simulation.world=flat-relief"], days="2022", domain=None)
    assert job.domain.coarse.shape == (32, 48)
    assert len(job.days) == 365
    assert (job.simulation.seed, job.simulation.world) == (7, "flat-relief")


def test_unknown_keys_name_the_known_ones():
    with pytest.raises(CranpmError, match=r"simulation\.retrieval_noise.*found simulation\.sed"):
        load(SimulationJob, None, ["simulation.sed=1"], domain="alps", days="2021")


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("simulation.seed=-1", "greater than or equal to 0"),
        ("simulation.world=sideways", "choose factual, reverse-wind"),
        ("simulation.world=no-emissions:1,2,3,4", "choose factual"),
        ("simulation.retrieval_noise=lots", "valid number"),
        ("simulation.seed=99999999999999999999999", "less than 4294967296"),
        ("simulation.spin_up_days=1000000", "less than or equal to 366"),
        ("seed", "--set key=value"),
        ("domain.name=x", "a table domain"),
    ],
)
def test_bad_values(override, message):
    with pytest.raises(CranpmError, match=message):
        load(SimulationJob, None, [override], domain="alps", days="2021")


def test_bad_files(tmp_path):
    with pytest.raises(CranpmError, match="settings file"):
        load(SimulationJob, tmp_path / "none.toml")
    broken = tmp_path / "broken.toml"
    broken.write_text("days = ")
    with pytest.raises(CranpmError, match="TOML in"):
        load(SimulationJob, broken)


def test_missing_values_and_dates():
    with pytest.raises(CranpmError, match="a value for domain; found none"):
        load(SimulationJob, None, days="2021")
    assert len(load(SimulationJob, None, ["days=2021-01-01"], domain="alps").days) == 1


def test_domain_errors_keep_their_words():
    with pytest.raises(CranpmError, match="north above south"):
        load(SimulationJob, None, domain="42,4,50,16", days="2021")
