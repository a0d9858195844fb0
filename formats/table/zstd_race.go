//go:build race

package table

import (
	"runtime"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/compress"
	parquetzstd "github.com/parquet-go/parquet-go/compress/zstd"
)

func init() {
	zstdCodec, packedCodec = newKeptEncoders(zstd.SpeedDefault), newKeptEncoders(zstd.SpeedFastest)
}

// keptEncoders is parquet-go's Zstandard codec with up to four encoders that it keeps. If all of them
// are in use, an encoder comes from the codec's sync.Pool. Under the race detector a sync.Pool drops
// a quarter of its items, so tests would spend half their time on new encoders of over 1 MiB.
type keptEncoders struct {
	compress.Codec
	idle chan *zstd.Encoder
}

// newKeptEncoders makes all encoders in advance: if a goroutine in a synctest bubble made one, no
// goroutine outside the bubble could use it.
func newKeptEncoders(level zstd.EncoderLevel) *keptEncoders {
	n := min(runtime.GOMAXPROCS(0), 4)
	k := &keptEncoders{&parquetzstd.Codec{Level: level}, make(chan *zstd.Encoder, n)}
	for range n {
		e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(level), zstd.WithZeroFrames(true), zstd.WithEncoderCRC(false))
		if err != nil {
			break // the encoders of the pool will report the error
		}
		e.EncodeAll([]byte{0}, nil) // makes the encoder allocate its tables and channels
		k.idle <- e
	}
	return k
}

// Encode implements compress.Codec. It returns the same bytes as parquet-go's codec.
func (k *keptEncoders) Encode(dst, src []byte) ([]byte, error) {
	select {
	case e := <-k.idle:
		defer func() { k.idle <- e }()
		return e.EncodeAll(src, dst[:0]), nil
	default:
		return k.Codec.Encode(dst, src)
	}
}
