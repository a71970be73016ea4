"""Images beside text: where they may come from, what is checked of them, and how they are sent."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path, PurePosixPath, PureWindowsPath
from urllib.parse import urlsplit

from ..errors import InputError, brief
from ..fence import NOTHING, spelt

MOST_BYTES = 10 << 20
"""The largest image that is sent; providers take 5 to 50 MB."""

MAGIC = {
    rb"\x89PNG\r\n\x1a\n": "image/png",
    rb"\xff\xd8\xff": "image/jpeg",
    rb"GIF8[79]a": "image/gif",
    rb"RIFF....WEBP": "image/webp",
}
"""How a file of each kind begins; what its name says counts for nothing."""

_MARK = re.compile(r"\[image ([1-9][0-9]{0,8})\]")


@dataclass(frozen=True)
class Image:
    """An image, which a judge that sees is sent, and of which everything else holds the name.

    Attributes:
        name: its path or address as it was given, without what could be a secret; a hash, for a data URL.
        digest: changes with the image's bytes; of one on the web, with its address.
        place: the file, the address, or the data URL.
    """

    name: str
    digest: str
    place: str = field(repr=False)

    @classmethod
    def of(cls, place: object, folder: Path | None = None) -> Image:
        """An image that a row names: an `https:` address, a data URL, or a path below the row's own folder.

        Raises:
            InputError: it is elsewhere, no image, or too large; any path where there is no folder.
        """
        if not isinstance(place, str) or not place:
            raise InputError(f"an image must be named by a path, an https address or a data URL, found {brief(place)}")
        if place[:5].lower() == "data:":
            data = _decoded(place)
            hashed = hashlib.sha256(data).hexdigest()
            return cls(f"sha256:{hashed[:16]}", hashed, _data_url(data, "a data URL"))
        if re.match(r"[A-Za-z][A-Za-z0-9+.-]+:", place):
            address = f"https:{place[6:]}" if place[:6].lower() == "https:" else ""
            return cls(_public(address, place), hashlib.sha256(place.encode()).hexdigest(), address)
        if folder is None:
            raise InputError(f"image {brief(place)}: paths are taken only from files of samples; use Image.read(PATH)")
        return cls._at(_below(folder, place), place)

    @classmethod
    def read(cls, path: str | Path) -> Image:
        """An image in a file, wherever that is.

        Raises:
            InputError: it cannot be read, is no image, or too large.
        """
        return cls._at(Path(path).absolute(), str(path))

    @classmethod
    def _at(cls, path: Path, name: str) -> Image:
        data = _bytes_of(path, name)
        _kind(data, name)
        return cls(name, hashlib.sha256(data).hexdigest(), str(path))

    def url(self) -> str:
        """What is sent: its address on the web, else a data URL.

        Raises:
            InputError: the file has changed since the sample was read, or is gone.
        """
        if self.place.startswith(("data:", "https:")):
            return self.place
        data = _bytes_of(Path(self.place), self.name)
        if hashlib.sha256(data).hexdigest() != self.digest:
            raise InputError(f"image {self.name}: has changed since the sample was read")
        return _data_url(data, self.name)


class Album:
    """The images of one sample: each is numbered, and a mark stands for it in the text."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder
        self.images: list[Image] = []

    def mark(self, place: object) -> str:
        """The mark of an image, which is taken in.

        Raises:
            InputError: as for `Image.of`.
        """
        image = place if isinstance(place, Image) else Image.of(place, self.folder)
        if image not in self.images:
            self.images.append(image)
        return f"[image {self.images.index(image) + 1}]"


def unmarked(text: str) -> str:
    """Text from outside, in which nothing is the mark of an image, or looks like one.

    >>> unmarked("See [Image 2].")
    'See [ Image 2].'
    """
    return _like_a_mark().sub(r"\g<0> ", text)


@cache
def _like_a_mark() -> re.Pattern[str]:
    begins = r"[\[［⁅⟦〚【〔](?=" + NOTHING
    return re.compile(rf"{begins}{spelt('image')}{NOTHING}[\d⁰-⁹₀-₉①-⒛])", re.IGNORECASE)


def image_numbers(text: str) -> list[int]:
    """The numbers of the images whose marks stand in a text, each once.

    >>> image_numbers("[image 2] and [image 1], [image 2]")
    [2, 1]
    """
    return list(dict.fromkeys(int(number) for number in _MARK.findall(text)))


def renumbered(text: str, own: Sequence[Image], by: int = 0) -> str:
    """The text, its own images' numbers that much higher; with no mark in it, where it has none.

    >>> renumbered("[image 1]", [Image("a.png", "", "")], 2), renumbered("[image 1]", [])
    ('[image 3]', '[ image 1]')
    """
    if not own:
        return unmarked(text)
    return _MARK.sub(lambda mark: f"[image {int(mark[1]) + by}]", text)


def _public(address: str, place: str) -> str:
    """An address on the web without what could be a secret.

    Raises:
        InputError: it is none that can be asked for.
    """
    try:
        parts = urlsplit(address)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host = None
    if not host or re.search(r"[\s\x00-\x1f\x7f\ud800-\udfff]", address):
        raise InputError(f"an image's address must begin with https:// and a host, found {brief(place)}")
    return f"https://{parts.netloc.rpartition('@')[2]}{parts.path}{'?…' if parts.query else ''}"


def _below(folder: Path, place: str) -> Path:
    """The file that a relative path means below a folder, links followed."""
    absolute = PurePosixPath(place).is_absolute() or PureWindowsPath(place).anchor
    parts = (*PurePosixPath(place).parts, *PureWindowsPath(place).parts)
    if absolute or ".." in parts or "\0" in place:
        raise InputError(f"image {brief(place)}: must be a path below the input's folder, without ..")
    try:
        base, path = folder.resolve(), (folder / place).resolve()
    except (OSError, RuntimeError, UnicodeError) as error:  # links in a circle, lone surrogates
        raise InputError(f"image {brief(place)}: cannot be read: {error}") from None
    if not path.is_relative_to(base):
        raise InputError(f"image {brief(place)}: a link leads out of the input's folder")
    return path


def _bytes_of(path: Path, name: str) -> bytes:
    try:
        about = path.stat()
        if not stat.S_ISREG(about.st_mode):
            raise InputError(f"image {brief(name)}: is no regular file")
        _check_size(about.st_size, name)
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except (OSError, UnicodeError) as error:
        raise InputError(f"image {brief(name)}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    _check_size(len(data), name)
    return data


def _decoded(url: str) -> bytes:
    head, _, body = url.partition(",")
    if not re.fullmatch(r"data:image/[\w.+-]+;base64", head, re.IGNORECASE):
        raise InputError(f"a data URL must begin with data:image/KIND;base64, found {brief(head)}")
    _check_size(len(body) * 3 // 4 - 2, "a data URL")
    try:
        return base64.b64decode(body, validate=True)
    except (binascii.Error, ValueError):
        raise InputError("the data URL of an image is not valid base64") from None


def _check_size(size: int, name: str) -> None:
    if size > MOST_BYTES:
        raise InputError(f"image {brief(name)}: has more than {MOST_BYTES >> 20} MB")


def _kind(data: bytes, name: str) -> str:
    found = next((kind for magic, kind in MAGIC.items() if re.match(magic, data[:16], re.DOTALL)), None)
    if found is None:
        raise InputError(f"image {brief(name)}: is neither PNG, JPEG, GIF nor WebP")
    return found


def _data_url(data: bytes, name: str) -> str:
    return f"data:{_kind(data, name)};base64,{base64.b64encode(data).decode()}"
