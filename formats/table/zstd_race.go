//go:build race

package table

import (
	"runtime"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/compress"
	parquetzstd "github.com/parquet-go/parquet-go/compress/zstd"
)

func init() { zstdCodec = newKeptEncoders() }

// keptEncoders is parquet-go's Zstandard codec, but keeps four encoders. If all are in use, an
// encoder comes from the codec's pool. Under the race detector a sync.Pool drops a quarter of what
// is put back. An encoder takes over a megabyte, so tests spent half their time making new ones.
type keptEncoders struct {
	compress.Codec
	idle chan *zstd.Encoder
}

// newKeptEncoders makes all encoders in advance, because an encoder that is made in a synctest
// bubble cannot be used outside it.
func newKeptEncoders() *keptEncoders {
	n := min(runtime.GOMAXPROCS(0), 4)
	k := &keptEncoders{&parquetzstd.Codec{Level: parquetzstd.SpeedDefault}, make(chan *zstd.Encoder, n)}
	for range n {
		e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedDefault), zstd.WithZeroFrames(true), zstd.WithEncoderCRC(false))
		if err != nil {
			break // the pool's encoders report it
		}
		e.EncodeAll([]byte{0}, nil) // makes its tables and channels
		k.idle <- e
	}
	return k
}

// Encode implements compress.Codec. The bytes are those of parquet-go's codec.
func (k *keptEncoders) Encode(dst, src []byte) ([]byte, error) {
	select {
	case e := <-k.idle:
		defer func() { k.idle <- e }()
		return e.EncodeAll(src, dst[:0]), nil
	default:
		return k.Codec.Encode(dst, src)
	}
}
