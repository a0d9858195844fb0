package usage

import (
	"io"
	"os"
)

// Open opens a file that the user names, or stdin for "-".
func Open(name string, stdin io.Reader) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(stdin), nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, Error(err)
	}
	return f, nil
}

// ReadFile reads a file that the user names, or stdin for "-". An input longer than limit bytes is
// an error.
func ReadFile(name string, stdin io.Reader, limit int64) ([]byte, error) {
	in, err := Open(name, stdin)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	body, err := io.ReadAll(io.LimitReader(in, limit+1))
	if err != nil {
		return nil, Errorf("%q: %v", name, err)
	}
	if int64(len(body)) > limit {
		return nil, Errorf("%q is larger than %d bytes", name, limit)
	}
	return body, nil
}
