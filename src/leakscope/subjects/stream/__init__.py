"""Files of any size, in bounded memory, here or on a cluster."""

from leakscope.subjects.stream.fits import StreamedFit as StreamedFit
