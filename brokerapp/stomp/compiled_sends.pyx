# cython: language_level=3
"""CompiledSendReader: reads plain SENDs in one pass over their bytes, without an object for each header line.

Optional: send_reader.py reads them without it and finds the same. What is less plain is left to it. After a change:
`make setup`.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.string cimport memchr, memcmp, memcpy

from brokerapp.model.message import unescape
from brokerapp.stomp.frame_batches import SendFrame
from brokerapp.stomp.send_heads import DECIDING, INTERPRETED, MAX_SEND_HEAD_BYTES, VARYING, canonical_lines

#: Headers that have a slot of their own, in this order. Heads with others that are interpreted are left to Python:
#: clients seldom send those.
SLOT_NAMES = (*DECIDING, *VARYING, "content-length", "receipt")

cdef enum:
    DECIDING_SLOTS = 6
    LENGTH_SLOT = 9
    RECEIPT_SLOT = 10
    SLOTS = 11
    LEFT = 64  # what a header is that is left to Python
    PROPERTY = 65  # what any other header is
    MAX_NAMES = 64  # that are interpreted, and bytes of one
    MAX_PROPERTIES = 48  # their names are compared with each other; heads with more are left to Python
    MAX_DIGITS = 9  # of a content-length
    ZERO = 48  # the character

assert (len(DECIDING), len(SLOT_NAMES)) == (DECIDING_SLOTS, SLOTS)


cdef struct Name:
    const char *text
    Py_ssize_t size
    int what  # a slot, or LEFT


cdef struct Piece:
    const char *text  # NULL: there is none
    Py_ssize_t size


cdef struct Head:
    Piece slots[SLOTS]  # values
    Piece names[MAX_PROPERTIES]  # of the properties
    Py_ssize_t property_bytes  # in the lines of all properties
    int property_count
    bint is_contiguous  # the lines of properties follow each other
    bint is_canonical  # no value of a property has a colon
    bint has_escapes
    bint is_ascii
    bint varies  # one of VARYING is among its headers


cdef Py_ssize_t MAX_HEAD = MAX_SEND_HEAD_BYTES
#: The names that are interpreted, by their size; where those of a size begin; and the bytes that they point to.
cdef Name NAMES[MAX_NAMES]
cdef int FIRST_OF_SIZE[MAX_NAMES + 1]
_name_bytes = []


cdef int _fill_names() except -1:
    cdef int at, size
    names = sorted([(len(name.encode()), name.encode(), name) for name in INTERPRETED | set(SLOT_NAMES)])
    assert len(names) <= MAX_NAMES and names[-1][0] < MAX_NAMES
    for at, (length, text, name) in enumerate(names):
        _name_bytes.append(text)
        NAMES[at].text, NAMES[at].size = PyBytes_AS_STRING(text), length
        NAMES[at].what = SLOT_NAMES.index(name) if name in SLOT_NAMES else LEFT
    for size in range(MAX_NAMES + 1):
        FIRST_OF_SIZE[size] = sum([length < size for length, _, _ in names])
    return 0


_fill_names()


cdef class CompiledSendReader:
    """Reads the SENDs of one connection."""

    cdef tuple _like  # what decided about the SEND that was read last

    def __init__(self):
        self._like = (None,) * DECIDING_SLOTS

    def read(self, bytes buffer, Py_ssize_t start, bint is_1_2, Py_ssize_t max_body, list sends):
        """Append the complete plain SENDs that begin here to `sends`; return where the first begins that is neither."""
        cdef const char *text = PyBytes_AS_STRING(buffer)
        cdef Py_ssize_t size = PyBytes_GET_SIZE(buffer), end
        while True:
            while start < size and _is_between(text[start]):
                start += 1
            end = self._read_one(text, size, start, is_1_2, max_body, sends)
            if end < 0:
                return start
            start = end

    cdef Py_ssize_t _read_one(
        self, const char *text, Py_ssize_t size, Py_ssize_t start, bint is_1_2, Py_ssize_t max_body, list sends
    ) except -2:
        """Append the SEND that begins here to `sends` and return where it ends; -1: it is not complete, or not plain."""
        cdef Head head
        cdef Py_ssize_t begin, end, length = -1
        begin = _scan(text, size, start, is_1_2, &head)
        if begin < 0:
            return -1
        if head.slots[LENGTH_SLOT].text != NULL:
            length = _number(head.slots[LENGTH_SLOT])
            if length < 0:
                return -1
            end = begin + length
        else:
            end = _find(text, begin, size, 0)
        if end < begin or end >= size or text[end] != 0 or end - begin > max_body:
            return -1
        lines = PyBytes_FromStringAndSize(text + start, begin - 2 - start)
        if not head.is_ascii and not _is_utf8(lines):
            return -1
        varying = _values(&head, DECIDING_SLOTS, LENGTH_SLOT) if head.varies else None
        body = PyBytes_FromStringAndSize(text + begin, end - begin)
        sends.append(SendFrame(self._like_of(&head), _properties(&head), body, varying, length >= 0, _receipt(&head), lines))
        return end + 1

    cdef tuple _like_of(self, Head *head):
        """Return the values that decide about a message: the same objects again where they are those of the last one."""
        cdef int slot
        cdef Piece value
        for slot in range(DECIDING_SLOTS):
            value, known = head.slots[slot], self._like[slot]
            if (known is None) != (value.text == NULL) or (
                known is not None
                and (
                    PyBytes_GET_SIZE(known) != value.size
                    or memcmp(PyBytes_AS_STRING(known), value.text, value.size) != 0
                )
            ):
                self._like = _values(head, 0, DECIDING_SLOTS)
                break
        return self._like


cdef inline bint _is_between(char byte) noexcept nogil:
    """Return whether this may stand between frames."""
    return byte == b"\n" or byte == 0 or byte == b"\r" or byte == b" " or byte == b"\t"


cdef Py_ssize_t _scan(const char *text, Py_ssize_t size, Py_ssize_t start, bint is_1_2, Head *head) noexcept nogil:
    """Find what the head of the SEND that begins here says; return where its body begins, -1: it is not plain."""
    cdef Py_ssize_t line = start + 5, window = min(size, start + MAX_HEAD + 2), stop, colon
    if size - start < 7 or memcmp(text + start, b"SEND\n", 5) != 0 or text[line] == b"\n":
        return -1
    cdef int slot
    for slot in range(SLOTS):
        head.slots[slot].text = NULL
    head.property_bytes = head.property_count = 0
    head.is_contiguous = head.is_canonical = head.is_ascii = True
    head.has_escapes = head.varies = False
    while True:
        stop = _find(text, line, window, b"\n")
        if stop < 0:
            return -1
        if stop == line:
            return stop + 1
        colon = _find(text, line, stop, b":")
        if colon <= line or not _scan_characters(text, line, colon, stop, is_1_2, head):
            return -1
        if not _note_line(text, line, colon, stop, head):
            return -1
        line = stop + 1


cdef bint _scan_characters(
    const char *text, Py_ssize_t line, Py_ssize_t colon, Py_ssize_t stop, bint is_1_2, Head *head
) noexcept nogil:
    """Note which characters a header line has; return whether it is plain."""
    cdef Py_ssize_t at
    cdef unsigned char byte
    for at in range(line, stop):
        byte = <unsigned char> text[at]
        if byte == b"\\":
            head.has_escapes = True
            if at < colon or (not is_1_2 and text[at + 1] == b"r"):
                return False
        elif byte >= 128:
            head.is_ascii = False
        elif byte == 0 or byte == b"\r":
            return False
    return True


cdef bint _note_line(const char *text, Py_ssize_t line, Py_ssize_t colon, Py_ssize_t stop, Head *head) noexcept nogil:
    """Note the header in a line; return whether it is plain, and none before has its name."""
    cdef Piece name, value, before
    cdef int what, at
    name.text, name.size = text + line, colon - line
    value.text, value.size = text + colon + 1, stop - colon - 1
    what = _what(name)
    if what == LEFT:
        return False
    if what != PROPERTY:
        if head.slots[what].text != NULL:
            return False
        head.slots[what] = value
        head.varies = head.varies or DECIDING_SLOTS <= what < LENGTH_SLOT
        return True
    if head.property_count == MAX_PROPERTIES:
        return False
    for at in range(head.property_count):
        before = head.names[at]
        if before.size == name.size and memcmp(before.text, name.text, name.size) == 0:
            return False
    if head.property_count and head.names[0].text + head.property_bytes != name.text:
        head.is_contiguous = False
    head.names[head.property_count] = name
    head.property_count += 1
    head.property_bytes += stop + 1 - line
    head.is_canonical = head.is_canonical and memchr(value.text, b":", value.size) == NULL
    return True


cdef inline int _what(Piece name) noexcept nogil:
    """Return the slot of a header of this name, LEFT, or PROPERTY."""
    cdef int at
    if name.size < MAX_NAMES:
        for at in range(FIRST_OF_SIZE[name.size], FIRST_OF_SIZE[name.size + 1]):
            if NAMES[at].text[0] == name.text[0] and memcmp(NAMES[at].text, name.text, name.size) == 0:
                return NAMES[at].what
    return PROPERTY


cdef inline Py_ssize_t _find(const char *text, Py_ssize_t start, Py_ssize_t end, char byte) noexcept nogil:
    """Return where this byte is between two places; -1: nowhere."""
    cdef const char *found = <const char *> memchr(text + start, byte, end - start)
    return -1 if found == NULL else found - text


cdef Py_ssize_t _number(Piece digits) noexcept nogil:
    """Return the number of these digits; -1: there are none or too many, or they are something else."""
    cdef Py_ssize_t number = 0, at
    cdef int digit
    if digits.size == 0 or digits.size > MAX_DIGITS:
        return -1
    for at in range(digits.size):
        digit = digits.text[at] - ZERO
        if digit < 0 or digit > 9:
            return -1
        number = number * 10 + digit
    return number


cdef bint _is_utf8(bytes text):
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


cdef tuple _values(Head *head, int first, int end):
    """Return the values of these slots."""
    return tuple([_value(head.slots[slot]) for slot in range(first, end)])


cdef object _value(Piece value):
    return None if value.text == NULL else PyBytes_FromStringAndSize(value.text, value.size)


cdef object _receipt(Head *head):
    cdef Piece value = head.slots[RECEIPT_SLOT]
    if value.text == NULL:
        return None
    receipt = PyUnicode_DecodeUTF8(value.text, value.size, NULL)
    return unescape(receipt) if head.has_escapes else receipt


cdef object _properties(Head *head):
    """Return the lines of the properties as the broker stores them."""
    if head.property_count == 0:
        return ""
    if head.is_contiguous and head.is_canonical and not head.has_escapes:
        return PyUnicode_DecodeUTF8(head.names[0].text, head.property_bytes, NULL)
    return canonical_lines(_joined(head), head.property_count)


cdef bytes _joined(Head *head):
    """Return the lines of the properties, one after the other."""
    cdef bytes joined = PyBytes_FromStringAndSize(NULL, head.property_bytes)
    cdef char *to = PyBytes_AS_STRING(joined)
    cdef const char *line
    cdef Py_ssize_t size
    for at in range(head.property_count):
        line = head.names[at].text
        size = <const char *> memchr(line, b"\n", MAX_HEAD + 2) + 1 - line
        memcpy(to, line, size)
        to += size
    return joined
