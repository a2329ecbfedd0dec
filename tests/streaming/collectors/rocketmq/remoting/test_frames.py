import itertools
import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streaming.collectors.rocketmq.remoting import frames
from streaming.collectors.rocketmq.remoting.frames import Frame, FrameError, FrameReader, HeaderForm, encode
from tests.streaming.collectors.rocketmq.golden_answers import NAMES, VERSIONS, recorded_bytes, wire

_TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
_INTS = st.integers(-(2**31), 2**31 - 1)


def _some_frames(form: HeaderForm) -> st.SearchStrategy[Frame]:
    small = st.integers(-(2**15), 2**15 - 1)
    return st.builds(
        Frame,
        code=_INTS if form is HeaderForm.JSON else small,
        opaque=_INTS,
        flag=_INTS,
        fields=st.dictionaries(_TEXTS, _TEXTS, max_size=5),
        body=st.binary(max_size=200),
        remark=st.none() | _TEXTS.filter(bool),
        language=st.sampled_from(["JAVA", "PYTHON", "GO", "OTHER"]),
        version=_INTS if form is HeaderForm.JSON else small,
        form=st.just(form),
    )


_FRAMES = st.sampled_from(HeaderForm).flatmap(_some_frames)


@given(_FRAMES)
def test_encoded_frames_decode_to_the_same(frame):
    assert FrameReader().feed(encode(frame)) == [frame]


@given(st.lists(_FRAMES, max_size=4), st.lists(st.integers(0, 2_000), max_size=8))
def test_frames_are_the_same_however_they_are_cut(some, cuts):
    stream = b"".join(map(encode, some))
    places = [0, *sorted(place % (len(stream) + 1) for place in cuts), len(stream)]
    reader = FrameReader()
    read = [frame for start, end in itertools.pairwise(places) for frame in reader.feed(stream[start:end])]
    assert read == some
    assert reader.waiting_bytes == 0
    byte_by_byte = [frame for byte in stream for frame in reader.feed(bytes([byte]))]
    assert byte_by_byte == some


@pytest.mark.parametrize("name", NAMES)
def test_recorded_frames_are_read(name):
    version, answer = name.split("/")
    data = recorded_bytes(version, answer)
    (frame,) = FrameReader().feed(data)
    assert (frame.opaque, frame.is_response) == (7, True)
    if name == "4.9.7/cluster-binary":
        # 4.9 answers in the form of the request, 5.5 does not.
        assert (frame.form, frame.code, frame.version, frame.language) == (HeaderForm.ROCKETMQ, 0, 407, "JAVA")
        return
    assert frame.form is HeaderForm.JSON
    # Taken apart by hand: two words, then JSON, then the body.
    length = int.from_bytes(data[4:8])
    header = json.loads(data[8 : 8 + length])
    assert (frame.code, frame.remark, frame.body) == (header["code"], header.get("remark"), data[8 + length :])
    assert dict(frame.fields) == header.get("extFields", {})


@pytest.mark.parametrize("version", VERSIONS)
def test_binary_frames_of_rocketmq_are_read(version):
    written = wire(version)
    expected = {
        "frame-request": Frame(
            203, 77, 0, {"consumerGroup": "größe 工", "empty": ""}, b"body", None, "JAVA", 395, HeaderForm.ROCKETMQ
        ),
        "frame-response": Frame(17, 2**31 - 1, 1, {}, b"", "not ä topic", "GO", 395, HeaderForm.ROCKETMQ),
        "frame-bare": Frame(0, 0, 1, {}, b"", None, "JAVA", 395, HeaderForm.ROCKETMQ),
    }
    for name, frame in expected.items():
        assert FrameReader().feed(written[name]) == [frame]
        if name != "frame-request":  # its fields are written in the order of a hash map
            assert encode(frame) == written[name]


def test_a_response_to_a_response_form_is_a_response():
    request = Frame(203, 5, form=HeaderForm.ROCKETMQ)
    answer = request.answer(206, b"", remark="nobody")
    assert (answer.opaque, answer.is_response, answer.form, answer.remark) == (5, True, HeaderForm.ROCKETMQ, "nobody")


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\x7f\xff\xff\xff", "2 GB"),
        (b"\xff\xff\xff\xff", "a negative length, as Java sees it"),
        ((frames.MAX_FRAME_BYTES + 1).to_bytes(4), "one more than the limit"),
        (b"\x00\x00\x00\x03", "no room for the header's length"),
        (b"\x00\x00\x00\x00", "nothing"),
        (b"HTTP/1.1 400 Bad Request", "another protocol"),
        (b"\x00\x00\x00\x08\x00\x00\x00\x05", "a header that is longer than its frame"),
        (b"\x00\x00\x00\x08\x02\x00\x00\x04", "an unknown form of header"),
        (b"\x00\x20\x00\x00\x00\x1f\x00\x00", "a header of 2 MB"),
        (b"\x00\x00\x00\x06\x00\x00\x00\x02{}", "a header without a code"),
        (b"\x00\x00\x00\x06\x00\x00\x00\x02{[", "a header that is no JSON"),
        (b"\x00\x00\x00\x04\x01\x00\x00\x00", "an empty binary header"),
    ],
)
def test_an_invalid_frame_is_refused_at_once_and_for_good(data, why):
    reader = FrameReader()
    with pytest.raises(FrameError):
        reader.feed(data)
    assert reader.waiting_bytes == 0
    with pytest.raises(FrameError):
        reader.feed(encode(Frame(0, 1)))


def test_a_frame_of_just_the_limit_is_taken():
    whole = encode(Frame(0, 1, body=b"x" * 100))
    assert len(FrameReader(max_frame_bytes=len(whole) - 4).feed(whole)) == 1
    with pytest.raises(FrameError):
        FrameReader(max_frame_bytes=len(whole) - 5).feed(whole)


def test_a_header_that_is_too_long_is_not_written():
    with pytest.raises(FrameError):
        encode(Frame(0, 1, remark="x" * frames.MAX_HEADER_BYTES))
    with pytest.raises(FrameError):
        encode(Frame(200_050, 1, form=HeaderForm.ROCKETMQ))


def test_a_header_may_be_what_only_fastjson_takes_for_json():
    header = b"{code:0,'opaque':7,\"flag\":1,extFields:{a:'b',c:null},language:9}"
    length = len(header)
    (frame,) = FrameReader().feed((4 + length).to_bytes(4) + length.to_bytes(4) + header)
    assert (frame.opaque, dict(frame.fields), frame.language) == (7, {"a": "b"}, "GO")


@given(st.binary(max_size=300))
@example(b"\x00\x00\x00\x1a\x01\x00\x00\x16" + b"\x00" * 15 + b"\xff\xff\xff\xff" + b"\x00" * 3)
def test_any_bytes_give_frames_or_one_error(data):
    reader = FrameReader(max_frame_bytes=10_000)
    try:
        reader.feed(data)
    except FrameError:
        return
    assert reader.waiting_bytes <= len(data)


@given(st.sampled_from(NAMES), st.data())
def test_mutated_recordings_give_frames_or_one_error(name, data):
    broken = bytearray(recorded_bytes(*name.split("/")))
    # Only the header counts: frames do not look into bodies.
    for place in data.draw(st.lists(st.integers(0, min(len(broken), 120) - 1), min_size=1, max_size=5)):
        broken[place] = data.draw(st.integers(0, 255))
    try:
        FrameReader().feed(bytes(broken))
    except FrameError:
        return


@given(st.binary(min_size=21, max_size=120), st.integers(0, 1))
def test_any_binary_header_gives_a_frame_or_one_error(header, form):
    data = (4 + len(header)).to_bytes(4) + (form << 24 | len(header)).to_bytes(4) + header
    try:
        (frame,) = FrameReader().feed(data)
    except FrameError:
        return
    assert frame.form == form
