"""Settings from one TOML file and `--set a.b=c`, validated; an unknown key is an error."""

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from cranpm.core.errors import CranpmError

Settings = TypeVar("Settings", bound=BaseModel)


def load(model: type[Settings], path: Path | None = None, overrides: Sequence[str] = (), **given: Any) -> Settings:
    """Settings from a file, then `given` values, then overrides written as key=value, each winning over the last.

    Keys may have the `earlier_names` of the settings.
    """
    values = present_keys(model, _read(path)) if path else {}
    values |= {key: value for key, value in given.items() if value is not None}
    for override in overrides:
        _override(values, override, earlier_names(model))
    return validate(model, values)


def validate(model: type[Settings], values: Mapping[str, Any], table: str = "") -> Settings:
    """Settings from plain values; a refusal names the key, inside of `table` if that is given."""
    try:
        return model.model_validate(present_keys(model, values))
    except ValidationError as error:
        raise _explain(error, model, table) from None


def earlier_names(model: type[BaseModel]) -> Mapping[str, str]:
    """Dotted keys as older versions wrote them, and what they are called now: the class variable of that name."""
    names: Mapping[str, str] = getattr(model, "earlier_names", {})
    return names


def present_keys(model: type[BaseModel], values: Mapping[str, Any]) -> dict[str, Any]:
    """Values under the present names of their keys; an old name beside the present one stays, to be refused."""
    return _present(values, earlier_names(model))


def _present(values: Mapping[str, Any], names: Mapping[str, str], table: str = "") -> dict[str, Any]:
    found = {}
    for key, value in values.items():
        name = names.get(f"{table}{key}", key).rpartition(".")[2]
        inner = _present(value, names, f"{table}{name}.") if isinstance(value, Mapping) else value
        found[key if name in values else name] = inner
    return found


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text())
    except OSError as error:
        found = error.strerror or type(error).__name__
        raise CranpmError(expected=f"a settings file at {path}", found=found, remedy="Check the path.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise CranpmError(expected=f"TOML in {path}", found=str(error), remedy="Correct that line.") from None


def _override(values: dict[str, Any], override: str, names: Mapping[str, str]) -> None:
    key, equals, text = override.partition("=")
    if not key or not equals:
        raise CranpmError(expected="--set key=value", found=override, remedy="For example --set simulation.seed=3.")
    *tables, name = _present_key(key.strip(), names).split(".")
    for table in tables:
        inner = values.setdefault(table, {})
        if not isinstance(inner, dict):
            raise CranpmError(expected=f"a table {table}", found=f"{table} = {inner!r}", remedy=f"Set {table} itself.")
        values = inner
    values[name] = _parse(text.strip())


def _present_key(key: str, names: Mapping[str, str]) -> str:
    for old, new in names.items():
        if f"{key}.".startswith(f"{old}."):
            return new + key.removeprefix(old)
    return key


def _parse(text: str) -> Any:
    """A TOML value where the text is one, else the text itself."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _explain(error: ValidationError, model: type[BaseModel], table: str) -> CranpmError:
    problem = error.errors()[0]
    prefix = f"{table}." if table else ""
    place = prefix + (".".join(str(part) for part in problem["loc"]) or model.__name__)
    if problem["type"] == "extra_forbidden":
        return CranpmError(
            expected=f"one of the keys {', '.join(_keys(model, prefix))}",
            found=place,
            remedy="Correct or remove that key.",
        )
    if problem["type"] == "missing":
        return CranpmError(
            expected=f"a value for {place}", found="none", remedy=f"Give --{place}, or set it in the settings file."
        )
    return CranpmError(
        expected=f"{place}: {problem['msg']}",
        found=repr(problem["input"]),
        remedy="Correct that value.",
    )


def _keys(model: type[BaseModel], prefix: str = "") -> list[str]:
    keys = []
    for name, field in model.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            keys += _keys(kind, f"{prefix}{name}.")
        else:
            keys.append(f"{prefix}{name}")
    return keys
