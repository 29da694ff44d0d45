"""Files of any size, in bounded memory, here or on a cluster."""

from leakscope.subjects.stream.subject import Stream as Stream
