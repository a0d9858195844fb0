package extsort

import (
	"cmp"
	"context"
	"io"
)

// pipeWrites is the number of writes by which a pipe's writer may be ahead of its reader.
const pipeWrites = 3

// pipe passes bytes from one goroutine to another one.
type pipe struct {
	ctx        context.Context // ends when nobody reads any more
	full, free chan []byte
	read       []byte // the buffer that is read
	rest       []byte // what was not yet read of it
	err        error  // error of the writer, after which full is closed
}

func newPipe(ctx context.Context) *pipe {
	p := &pipe{ctx: ctx, full: make(chan []byte, pipeWrites), free: make(chan []byte, pipeWrites+1)}
	for range pipeWrites {
		p.free <- nil
	}
	return p
}

// Write implements io.Writer.
func (p *pipe) Write(b []byte) (int, error) {
	select {
	case buf := <-p.free:
		p.full <- append(buf[:0], b...) // there is room for all buffers
		return len(b), nil
	case <-p.ctx.Done():
		return 0, p.ctx.Err()
	}
}

// close ends what is written, perhaps with an error.
func (p *pipe) close(err error) {
	p.err = err
	close(p.full)
}

// Read implements io.Reader.
func (p *pipe) Read(b []byte) (int, error) {
	for len(p.rest) == 0 {
		buf, ok := <-p.full
		if !ok {
			return 0, cmp.Or(p.err, io.EOF)
		}
		if p.read != nil {
			p.free <- p.read
		}
		p.read, p.rest = buf, buf
	}
	n := copy(b, p.rest)
	p.rest = p.rest[n:]
	return n, nil
}
