package warc

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"strings"
	"testing"
	"time"
)

func TestADigestHasTheSameSumHoweverItIsWritten(t *testing.T) {
	body := []byte("body")
	one, two, five, old := sha1.Sum(body), sha256.Sum256(body), sha512.Sum512(body), md5.Sum(body)
	for algorithm, sum := range map[string][]byte{"sha1": one[:], "SHA-1": one[:], "sha256": two[:], "sha-256": two[:], "sha512": five[:], "md5": old[:], " md5": old[:]} {
		b32, b64 := base32.StdEncoding.EncodeToString(sum), base64.URLEncoding.EncodeToString(sum)
		for _, v := range []string{
			b32, strings.ToLower(b32), strings.TrimRight(b32, "="), b64, strings.TrimRight(b64, "="), base64.StdEncoding.EncodeToString(sum),
			hex.EncodeToString(sum), strings.ToUpper(hex.EncodeToString(sum)), " " + b32 + " ",
		} {
			d := Digest(algorithm + ":" + v)
			name, got, ok := d.Sum()
			if want := strings.TrimSpace(strings.ReplaceAll(strings.ToLower(algorithm), "-", "")); !ok || name != want || string(got) != string(sum) || !d.Of(body) || d.Of(nil) {
				t.Errorf("%q is %q %x, %t, want %q %x", d, name, got, ok, want, sum)
			}
		}
	}
	for _, d := range []Digest{"", "sha1", "sha1:", "sha1:XYZ", "crc32:00000000", "sha1:" + Digest(strings.Repeat("!", 32)), "sha1:" + Digest(strings.Repeat("g", 40)), "3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"} {
		if name, sum, ok := d.Sum(); ok || d.Of(nil) {
			t.Errorf("%q is %q %x", d, name, sum)
		}
	}
}

func FuzzDigestSum(f *testing.F) {
	f.Add("sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ")
	f.Add("sha-256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
	f.Add("MD5:1B2M2Y8AsgTpgAmY7PhCfg==")
	f.Fuzz(func(t *testing.T, text string) {
		d := Digest(text)
		if _, sum, ok := d.Sum(); ok && (len(sum) != d.hasher().Size() || !d.matches(sum)) {
			t.Errorf("%q has the sum %x, but it is not the digest of a text with it", d, sum)
		}
	})
}

func TestTheReferenceOfARevisit(t *testing.T) {
	h := Header{
		{"warc-refers-to", "<urn:uuid:1>"}, {FieldRefersToURI, "<http://a.test/>"}, {FieldRefersToDate, "2024-05-05T01:02:03.5Z"},
		{FieldPayloadDigest, "sha1:X"}, {FieldProfile, ProfileIdenticalPayload},
	}
	want := Reference{"urn:uuid:1", "http://a.test/", time.Date(2024, 5, 5, 1, 2, 3, 5e8, time.UTC), "sha1:X"}
	if got := h.Reference(); got != want || h.NotModified() {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := (Header{{FieldRefersToDate, "yesterday"}}).Reference(); got != (Reference{}) {
		t.Errorf("%+v of a header without a reference", got)
	}
	for _, profile := range []string{ProfileNotModified, "http://netpreserve.org/warc/1.0/revisit/server-not-modified", "<http://netpreserve.org/warc/1.0/revisit/server-not-modified>"} {
		if !(Header{{FieldProfile, profile}}).NotModified() {
			t.Errorf("%s is not the profile of an unmodified response", profile)
		}
	}
}
