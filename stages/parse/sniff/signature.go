package sniff

import (
	"bytes"
	"encoding/binary"
	"strings"
	"unicode/utf8"
)

// signature tells how documents of a media type begin.
type signature struct {
	begins    string
	at        int    // offset of the second part
	then      string // second part; "" if there is none
	mediaType string
}

// signatures lists the signatures of WHATWG MIME Sniffing in the order of section 7.1: 6.1
// (images), 6.2 (audio and video), 6.3 (fonts), 6.4 (archives) and 7.1 (documents). Signatures of
// other formats follow. The signature of RAR comes from RAR's own documentation, because no file
// has the signature in the standard.
var signatures = []signature{
	{"%PDF-", 0, "", "application/pdf"},
	{"%!PS-Adobe-", 0, "", "application/postscript"},

	{"\x00\x00\x01\x00", 0, "", "image/x-icon"},
	{"\x00\x00\x02\x00", 0, "", "image/x-icon"},
	{"BM", 0, "", "image/bmp"},
	{"GIF87a", 0, "", "image/gif"},
	{"GIF89a", 0, "", "image/gif"},
	{"RIFF", 8, "WEBPVP", "image/webp"},
	{"\x89PNG\r\n\x1A\n", 0, "", "image/png"},
	{"\xFF\xD8\xFF", 0, "", "image/jpeg"},

	{"FORM", 8, "AIFF", "audio/aiff"},
	{"ID3", 0, "", "audio/mpeg"},
	{"OggS\x00", 0, "", "application/ogg"},
	{"MThd\x00\x00\x00\x06", 0, "", "audio/midi"},
	{"RIFF", 8, "AVI ", "video/avi"},
	{"RIFF", 8, "WAVE", "audio/wave"},

	{"\x1F\x8B\x08", 0, "", "application/x-gzip"},
	{"PK\x03\x04", 30, "mimetypeapplication/epub+zip", "application/epub+zip"},
	{"PK\x03\x04", 30, "mimetypeapplication/vnd.oasis.opendocument.text", "application/vnd.oasis.opendocument.text"},
	{"PK\x03\x04", 0, "", "application/zip"},
	{"Rar!\x1A\x07\x00", 0, "", "application/x-rar-compressed"},
	{"Rar!\x1A\x07\x01\x00", 0, "", "application/x-rar-compressed"},

	{"\x00\x01\x00\x00", 0, "", "font/ttf"},
	{"OTTO", 0, "", "font/otf"},
	{"ttcf", 0, "", "font/collection"},
	{"wOFF", 0, "", "font/woff"},
	{"wOF2", 0, "", "font/woff2"},

	{"\x00asm", 0, "", "application/wasm"},
	{"II*\x00", 0, "", "image/tiff"},
	{"MM\x00*", 0, "", "image/tiff"},
	{"fLaC", 0, "", "audio/flac"},
	{"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1", 0, "", "application/x-ole-storage"}, // Word and Excel before 2007
	{"{\\rtf", 0, "", "application/rtf"},
	{"7z\xBC\xAF\x27\x1C", 0, "", "application/x-7z-compressed"},
	{"BZh", 4, "1AY&SY", "application/x-bzip2"},
	{"\xFD7zXZ\x00", 0, "", "application/x-xz"},
	{"\x28\xB5\x2F\xFD", 0, "", "application/zstd"},
	{"\x7FELF", 0, "", "application/x-executable"},
	{"MZ", 0, "", "application/x-msdownload"},
	{"SQLite format 3\x00", 0, "", "application/vnd.sqlite3"},
}

// typeBySignature returns the type of the format whose signature a document has, or "" if the
// document has no signature. A text may begin with the letters of a signature ("BMW …"). So a document
// with an ASCII signature must also have a byte that never occurs in text, unless the format is text.
func typeBySignature(p []byte) string {
	for i := range signatures {
		s := &signatures[i]
		if len(p) == 0 || p[0] != s.begins[0] || len(p) < len(s.begins) || string(p[:len(s.begins)]) != s.begins {
			continue
		}
		if s.then != "" && (len(p) < s.at || !bytes.HasPrefix(p[s.at:], []byte(s.then))) {
			continue
		}
		switch s.begins {
		case "%PDF-", "%!PS-Adobe-", "{\\rtf":
			return s.mediaType
		}
		if isASCII(s.begins) && !binaryData(p) {
			continue
		}
		return s.mediaType
	}
	switch {
	case len(p) >= 4 && string(p[:4]) == "\x1A\x45\xDF\xA3":
		return matroskaType(p)
	case len(p) >= 12 && string(p[4:8]) == "ftyp":
		return baseMedia(p)
	case isMP3(p):
		return "audio/mpeg"
	}
	return ""
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf })
}

// baseMedia tells apart the brands of ISO base media files (6.2.1, signature for MP4).
func baseMedia(p []byte) string {
	size := binary.BigEndian.Uint32(p)
	if uint64(size) > uint64(len(p)) || size%4 != 0 {
		return ""
	}
	switch string(p[8:12]) {
	case "avif", "avis":
		return "image/avif"
	case "heic", "heix", "mif1", "msf1":
		return "image/heic"
	case "qt  ":
		return "video/quicktime"
	case "M4A ":
		return "audio/mp4"
	case "isom", "iso2", "iso4", "iso5", "iso6", "avc1", "M4V ", "dash":
		return "video/mp4"
	}
	for at := 8; at+3 <= int(size); at += 4 {
		if at != 12 && string(p[at:at+3]) == "mp4" { // skips the version of the major brand
			return "video/mp4"
		}
	}
	return ""
}

// matroskaType tells WebM from other Matroska files by the document type in the header (6.2.2,
// signature for WebM).
func matroskaType(p []byte) string {
	for i := 4; i+1 < len(p) && i < 38; i++ {
		if p[i] != 0x42 || p[i+1] != 0x82 {
			continue
		}
		i += 2
		size, mask := 1, byte(0x80)
		for ; i < len(p) && size < 8 && p[i]&mask == 0; size++ {
			mask >>= 1
		}
		if i += size; i >= len(p) {
			break
		}
		if bytes.HasPrefix(bytes.TrimLeft(p[i:], "\x00"), []byte("webm")) {
			return "video/webm"
		}
	}
	return "video/x-matroska"
}

// These are the bit rates of MPEG audio layer III in kbit/s, for version 1 and for versions 2 and 2.5,
// and the sample rates of version 1.
var (
	mp3Rates  = [...]int{0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320}
	mp25Rates = [...]int{0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160}
	mp3Hertz  = [...]int{44100, 48000, 32000}
)

// isMP3 reports whether p begins with two frames of MPEG audio layer III (6.2.3,
// signature for MP3 without ID3).
func isMP3(p []byte) bool {
	n := mp3Frame(p)
	return n >= 4 && n < len(p) && mp3Frame(p[n:]) > 0
}

// mp3Frame returns the length of the frame at the start of p, or 0 if p does not begin with a
// frame.
func mp3Frame(p []byte) int {
	if len(p) < 4 || p[0] != 0xFF || p[1]&0xE0 != 0xE0 || p[1]&0x06 != 0x02 || p[2]>>4 == 15 || p[2]&0x0C == 0x0C {
		return 0
	}
	kbits, hertz := mp3Rates[p[2]>>4], mp3Hertz[p[2]&0x0C>>2]
	scale := 144_000
	switch p[1] & 0x18 {
	case 0x08: // reserved
		return 0
	case 0x10: // version 2
		kbits, hertz, scale = mp25Rates[p[2]>>4], hertz/2, 72_000
	case 0x00: // version 2.5
		kbits, hertz, scale = mp25Rates[p[2]>>4], hertz/4, 72_000
	}
	n := kbits * scale / hertz
	if p[2]&0x02 != 0 {
		n++
	}
	return n
}
