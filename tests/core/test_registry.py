"""Names are looked up, refused and added to; a plugin of another package is found by its entry points."""

import subprocess
import sys

import pytest

from cranpm.core.errors import CranpmError
from cranpm.core.registry import Registry


def test_things_are_found_by_name_in_the_order_of_registration():
    colours = Registry[int]("colour")
    colours.add("red", 1)

    @colours.register("green")
    def green() -> int:
        return 2

    assert list(colours) == ["red", "green"]
    assert colours["green"]() == 2
    with pytest.raises(CranpmError, match="a colour: red, green; found 'blue'"):
        colours["blue"]
    with pytest.raises(CranpmError, match="a second one called red"):
        colours.add("red", 3)


@pytest.mark.parametrize(("body", "told"), [("print('loaded')", "loaded"), ("1 / 0", "the plugin mine to be imported")])
def test_a_plugin_is_imported_once_or_told(tmp_path, body, told):
    (tmp_path / "mine.py").write_text(body)
    (tmp_path / "mine-1.0.dist-info").mkdir()
    (tmp_path / "mine-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    (tmp_path / "mine-1.0.dist-info" / "entry_points.txt").write_text("[cranpm.plugins]\nmine = mine\n")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
    code += "from cranpm.core.registry import Registry, load_plugins\n'a' in Registry('b')\nload_plugins()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout + done.stderr).count(told) == 1
