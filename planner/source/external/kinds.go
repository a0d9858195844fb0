package external

import (
	"bytes"
	"io"
	"strings"

	"github.com/klauspost/compress/gzip"
)

// The advice for archives that crawlbatch does not read. `warcio recompress` is the usual tool of web archives.
const (
	adviseARC     = "it is an ARC file, the format before WARC: convert it with `warcio recompress FILE.arc.gz FILE.warc.gz`"
	adviseZstd    = "it is compressed with zstd: decompress it to FILE.warc (zstd -d; if the file begins with a dictionary, that needs -D and the dictionary)"
	advisePacker  = "it is compressed with bzip2 or xz, so that no record can be read alone: decompress it, then run `warcio recompress FILE.warc FILE.warc.gz`"
	adviseOpen    = "its name ends in .open, so another crawler is still writing it: let it finish, or remove .open if it was stopped"
	adviseMembers = "compress each by itself, with `warcio recompress FILE.warc.gz NEW.warc.gz`"
)

// readable lists the endings of the names of files that crawlbatch reads.
var readable = []string{".warc", ".warc.gz", ".wacz"}

// refused lists the endings of the names of archives that crawlbatch does not read, with the advice.
var refused = []struct{ ending, advice string }{
	{".arc", adviseARC}, {".arc.gz", adviseARC},
	{".warc.zst", adviseZstd}, {".arc.zst", adviseARC},
	{".warc.bz2", advisePacker}, {".arc.bz2", adviseARC}, {".warc.xz", advisePacker}, {".arc.xz", adviseARC},
	{".warc.open", adviseOpen}, {".warc.gz.open", adviseOpen},
}

// isReadable reports whether crawlbatch reads files of this name. Letter case does not matter.
func isReadable(name string) bool {
	for _, ending := range readable {
		if hasEnding(name, ending) {
			return true
		}
	}
	return false
}

// Refused says why crawlbatch does not read a web archive of this name, and what to do. It returns "" for
// other names. Files with misleading names are found when they are read.
func Refused(name string) string {
	for _, r := range refused {
		if hasEnding(name, r.ending) {
			return r.advice
		}
	}
	return ""
}

func hasEnding(name, ending string) bool {
	return len(name) >= len(ending) && strings.EqualFold(name[len(name)-len(ending):], ending)
}

// The magic bytes of files that are not WARC.
var (
	magicZip    = []byte("PK\x03\x04")
	magicARC    = []byte("filedesc:")
	magicGzip   = []byte{0x1f, 0x8b}
	magicPacker = [][]byte{[]byte("BZh"), []byte("\xfd7zXZ\x00")}
	magicZstd   = []byte("\x28\xb5\x2f\xfd")
)

// refusedContent is Refused by the first bytes of a file, which WARC files never have.
func refusedContent(head []byte) string {
	plain := head
	if bytes.HasPrefix(head, magicGzip) {
		if z, err := gzip.NewReader(bytes.NewReader(head)); err == nil {
			first := make([]byte, len(magicARC))
			n, _ := io.ReadFull(z, first)
			plain = first[:n]
		}
	}
	switch {
	case bytes.HasPrefix(plain, magicARC):
		return adviseARC
	case bytes.HasPrefix(head, magicZstd), len(head) >= 4 && head[0]&0xf0 == 0x50 && string(head[1:4]) == "\x2a\x4d\x18": // RFC 8878, section 3.1.2
		return adviseZstd
	case bytes.HasPrefix(head, magicPacker[0]), bytes.HasPrefix(head, magicPacker[1]):
		return advisePacker
	}
	return ""
}
