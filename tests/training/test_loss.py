"""The objective against an independent package, naive computations and fields whose answer is known."""

import pytest
import torch
from focal_frequency_loss import FocalFrequencyLoss

from cranpm.core.errors import CranpmError
from cranpm.training.loss import LossSettings, Term, bilinear, focal_frequency, loss_terms, station_error, weighted

NO_STATIONS = torch.full((2, 1, 3), torch.nan)


def fields(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    random = torch.Generator().manual_seed(seed)
    return tuple(40 * torch.rand(2, 32, 48, generator=random) for _ in range(2))


def mean(term: Term) -> torch.Tensor:
    return term.total / term.number


def test_frequency_term_equals_the_authors_package():
    prediction, target = fields()
    reference = FocalFrequencyLoss(loss_weight=1.0, alpha=1.0)(prediction[:, None] / 20, target[:, None] / 20)
    assert mean(focal_frequency((prediction - target) / 20)) == pytest.approx(float(reference), rel=1e-5)


def test_pixels_without_a_target_take_the_prediction():
    prediction, target = fields()
    target[:, 5:20, :30] = torch.nan
    filled = torch.where(target.isnan(), prediction, target)
    got = mean(loss_terms(prediction, target, NO_STATIONS, 20.0)["frequency"])
    naive = 0.0
    for one, two in zip(prediction / 20, filled / 20, strict=True):
        apart = torch.fft.fft2(one, norm="ortho") - torch.fft.fft2(two, norm="ortho")
        naive += float((apart.abs() / apart.abs().max() * apart.abs() ** 2).mean()) / 2
    assert got == pytest.approx(naive, rel=1e-4)


def test_missing_pixels_contribute_nothing():
    prediction, target = fields()
    target[:, :10] = torch.nan
    prediction.requires_grad_()
    terms = loss_terms(prediction, target, NO_STATIONS, 20.0)
    weighted(terms, LossSettings(), {name: term.number for name, term in terms.items()})["loss"].backward()
    assert terms["pixel"].number == 2 * 22 * 48
    assert prediction.grad[:, :10].abs().max() == 0
    assert prediction.grad[:, 10:].abs().min() > 0
    expected = ((prediction - target)[:, 10:] / 20).square().mean()
    assert float(mean(terms["pixel"]).detach()) == pytest.approx(float(expected.detach()), rel=1e-5)


def test_no_gradient_passes_through_the_weights():
    error = torch.zeros(1, 8, 8)
    error[0, 2, 3] = 1.0
    error.requires_grad_()
    mean(focal_frequency(error)).backward()
    # one pixel has the same size at every frequency, so all weights are 1 and the gradient is that of the mean square
    assert torch.allclose(error.grad, 2 * error.detach() / 64, atol=1e-6)


def test_a_perfect_forecast_costs_nothing():
    prediction, _ = fields()
    terms = loss_terms(prediction, prediction.clone(), NO_STATIONS, 20.0)
    assert [float(term.total) for term in terms.values()] == [0, 0, 0]


def test_stations_are_read_exactly_on_a_linear_field():
    row, col = torch.meshgrid(torch.arange(32.0), torch.arange(48.0), indexing="ij")
    field = (3 * row - 0.5 * col + 7)[None]
    places = torch.tensor([[0.0, 0.0], [10.25, 20.75], [31.0, 47.0], [30.9, 0.3]])
    got = bilinear(field, places[None, :, 0], places[None, :, 1])
    assert torch.allclose(got[0], 3 * places[:, 0] - 0.5 * places[:, 1] + 7, atol=1e-4)
    stations = torch.cat([places, got[0][:, None] + 4], dim=1)[None]
    assert mean(station_error(field, stations, 20.0)) == pytest.approx((4 / 20) ** 2, rel=1e-4)


def test_stations_by_the_sea_use_the_land_they_have():
    field = torch.tensor([[[10.0, torch.nan], [torch.nan, torch.nan]]])
    assert bilinear(field, torch.tensor([[0.4]]), torch.tensor([[0.4]])).item() == pytest.approx(10)
    assert bilinear(field, torch.tensor([[1.0]]), torch.tensor([[1.0]])).isnan().all()


def test_without_stations_there_is_no_term():
    prediction, target = fields()
    term = loss_terms(prediction, target, NO_STATIONS, 20.0)["station"]
    assert (term.total, term.number) == (0, 0)
    counts = {"pixel": torch.tensor(1.0), "frequency": torch.tensor(1.0), "station": term.number}
    losses = weighted(
        {"pixel": Term(*torch.ones(2)), "frequency": Term(*torch.ones(2)), "station": term}, LossSettings(), counts
    )
    assert losses["loss"] == pytest.approx(1.1)


def test_a_batch_without_a_valid_pixel_is_an_error():
    prediction, target = fields()
    terms = loss_terms(prediction, target * torch.nan, NO_STATIONS, 20.0)
    with pytest.raises(CranpmError, match="at least one land pixel with a target"):
        weighted(terms, LossSettings(), {name: term.number for name, term in terms.items()})


def test_parts_add_up_to_the_whole():
    prediction, target = fields()
    target[0, :20] = torch.nan
    whole = loss_terms(prediction, target, NO_STATIONS, 20.0)
    parts = [loss_terms(prediction[i : i + 1], target[i : i + 1], NO_STATIONS[:1], 20.0) for i in range(2)]
    for name, term in whole.items():
        assert sum(float(part[name].total) for part in parts) == pytest.approx(float(term.total), rel=1e-5)
        assert sum(float(part[name].number) for part in parts) == float(term.number)


def test_the_weights_come_from_settings():
    terms = {name: Term(torch.tensor(2.0), torch.tensor(1.0)) for name in ("pixel", "frequency", "station")}
    counts = {name: term.number for name, term in terms.items()}
    assert weighted(terms, LossSettings(frequency=0.5, station=0), counts)["loss"] == pytest.approx(3.0)
