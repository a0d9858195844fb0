package store

import (
	"bytes"
	"io"
)

// SameBytes reports whether a stored object has the same bytes as body. Both have size bytes, and
// SameBytes reads both up to the first difference. If one ends earlier, the error is
// io.ErrUnexpectedEOF: a connection may have broken.
func SameBytes(stored io.Reader, body io.ReaderAt, size int64) (bool, error) {
	const chunk = 128 << 10
	half := max(1, min(size, chunk))
	buffer := make([]byte, 2*half)
	ours, theirs := buffer[:half], buffer[half:]
	for off := int64(0); off < size; {
		n := min(size-off, half)
		if m, err := body.ReadAt(ours[:n], off); int64(m) < n {
			return false, unexpectedEOF(err)
		}
		if _, err := io.ReadFull(stored, theirs[:n]); err != nil {
			return false, unexpectedEOF(err)
		}
		if !bytes.Equal(ours[:n], theirs[:n]) {
			return false, nil
		}
		off += n
	}
	return true, nil
}

func unexpectedEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
