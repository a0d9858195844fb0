package wire

import (
	"time"

	"crawlbatch.io/crawlbatch/stages/fetch/wire/buffers"
	"crawlbatch.io/crawlbatch/stages/fetch/wire/coding"
	"crawlbatch.io/crawlbatch/stages/fetch/wire/dial"
	"crawlbatch.io/crawlbatch/stages/fetch/wire/http1"
)

// Timing holds how long each phase took, at least 1 ns. It is 0 for a phase that did not
// happen, for example on a kept connection or for a host that is an address.
type Timing struct {
	DNS       time.Duration // the wait for the look-up, also for an answer from the cache
	Connect   time.Duration // TCP (all attempts until one succeeded) and CONNECT
	TLS       time.Duration
	FirstByte time.Duration // from the request's first byte written to the response's first byte read
	Total     time.Duration // from the call of Do to its return
}

// Exchange is one request and its response. Several goroutines must not use it at the same
// time. The byte slices are valid until Release. Strings, the Header and the Warnings stay
// valid.
type Exchange struct {
	// RawRequest is the request as written, without credentials for a proxy.
	RawRequest []byte

	http1.Response // its Payload has at most MaxBody bytes
	// PayloadDigest is the SHA-1 of Payload in the form that WARC uses: "sha1:" and 32
	// characters of base32. It is empty if there was no response.
	PayloadDigest  string
	coding.Decoded // its Body has at most MaxBody bytes

	dial.Peer
	KeptAlive bool // the connection was kept for a later exchange

	Start    time.Time // when the client was about to write the request's first byte; zero if it did not get so far
	Timing   Timing
	BytesIn  int64 // bytes read from the peer inside TLS, including interim responses
	BytesOut int64 // bytes written to the peer inside TLS

	share *share // part of Config.Memory; nil before the response
}

// Release returns the buffers to their pool and clears every byte slice. A second call
// does nothing. A goroutine must release an exchange before its next Do, because that call
// may wait for the memory.
func (x *Exchange) Release() {
	buffers.Put(x.RawRequest)
	x.RawRequest = nil
	x.Decoded.Release()
	x.Response.Release()
	if x.share != nil {
		x.share.release()
	}
}
