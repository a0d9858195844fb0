package external

import (
	"crypto/md5"
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/takedown"
	"crawlbatch.io/crawlbatch/formats/warc"
)

const (
	identical   = "WARC-Profile: http://netpreserve.org/warc/1.0/revisit/identical-payload-digest\r\n"
	unmodified  = "WARC-Profile: http://netpreserve.org/warc/1.1/revisit/server-not-modified\r\n"
	unmodified0 = "WARC-Profile: http://netpreserve.org/warc/1.0/revisit/server-not-modified\r\n"
	status304   = "HTTP/1.1 304 Not Modified\r\n\r\n"
	status200   = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n"
)

// text returns a record. what is its type, the path of its URL, and its time in the hour.
func text(what, fields, block string) string {
	var kind, path, at string
	if _, err := fmt.Sscan(what, &kind, &path, &at); err != nil {
		panic(err)
	}
	if kind == "response" && block == "" {
		block = status200 + path[1:]
	}
	return fmt.Sprintf("WARC/1.1\r\nWARC-Type: %s\r\nWARC-Target-URI: http://a.test%s\r\nWARC-Date: 2024-05-05T01:%sZ\r\nWARC-Record-ID: <urn:%s%s>\r\n%sContent-Length: %d\r\n\r\n%s\r\n\r\n",
		kind, path, at, at, path, fields, len(block), block)
}

func digest(d warc.Digest) string { return "WARC-Payload-Digest: " + string(d) + "\r\n" }

func sha1Of(body string) string { return digest(warc.DigestOf([]byte(body))) }

func refers(id, path, at string) (fields string) {
	if id != "" {
		fields = "WARC-Refers-To: <urn:" + id + ">\r\n"
	}
	if path != "" {
		fields += "WARC-Refers-To-Target-URI: http://a.test" + path + "\r\n"
	}
	if at != "" {
		fields += "WARC-Refers-To-Date: 2024-05-05T01:" + at + "Z\r\n"
	}
	return fields
}

// resolvedIn returns what the source makes of the revisits in files: by path and time of each, the file and the place
// among its records of the payload, or the reason why there is none.
func resolvedIn(t *testing.T, gone *takedown.Guard, files ...[]string) map[string]string {
	t.Helper()
	b, _ := archive(t)
	var keys []string
	at := map[string]string{} // the names of places
	for i, records := range files {
		var file []byte
		keys = append(keys, fmt.Sprintf("f%d.warc.gz", i))
		for n, r := range records {
			member := gzipped(t, r)
			at[fmt.Sprintf("%s@%d+%d", keys[i], len(file), len(member))] = fmt.Sprintf("f%d #%d", i, n)
			file = append(file, member...)
		}
		put(t, b, keys[i], file)
	}
	got := map[string]string{}
	for e, err := range WARC(b, "archive", keys, Options{Scratch: t.TempDir(), Gone: gone}).Entries(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		_, path, _ := strings.Cut(e.URL, "a.test")
		if _, twice := got[path]; twice {
			path += " again"
		}
		switch c := e.Content; {
		case strings.Contains(e.Broken, "is a revisit"):
			_, why, _ := strings.Cut(e.Broken, "), but ")
			got[path] = why
		case e.Content.PayloadFilename != "":
			place := at[fmt.Sprintf("%s@%d+%d", c.PayloadFilename, c.PayloadOffset, c.PayloadLength)]
			got[path] = place
			if own := at[fmt.Sprintf("%s@%d+%d", c.Filename, c.Offset, c.Length)]; own == "" || e.File != c.Filename || e.Line == 0 || c.At == 0 || !e.Due || !e.Listed {
				t.Errorf("%+v is not the place of a record", e)
			}
		}
	}
	return got
}

const (
	noFile  = "no file has the record with its payload"
	neither = "the record with its payload cannot be read either, or was taken down"
	circle  = "it refers to revisits that refer to each other"
)

func TestRevisitsAreResolved(t *testing.T) {
	body := "body"
	sum256, sumMD5 := sha256.Sum256([]byte(body)), md5.Sum([]byte(body))
	sha1 := strings.TrimPrefix(string(warc.DigestOf([]byte(body))), "sha1:")
	raw1, _ := base32.StdEncoding.DecodeString(sha1)
	original := text("response /body 02:03", sha1Of(body), "")
	for name, c := range map[string]struct {
		files [][]string
		want  map[string]string
	}{
		"by digest, the original first": {[][]string{{original, text("revisit /r 05:00", identical+sha1Of(body), status200)}}, map[string]string{"/r": "f0 #0"}},
		"by digest, the original last":  {[][]string{{text("revisit /r 05:00", identical+sha1Of(body), status200), original}}, map[string]string{"/r": "f0 #1"}},
		"by digest, in another file": {[][]string{{text("revisit /r 05:00", identical+sha1Of(body), status200)}, {text("response /x 00:00", "", ""), original}},
			map[string]string{"/r": "f1 #1"}},
		"by digest, in base 16 and another letter case": {[][]string{{original, text("revisit /r 05:00", identical+digest(warc.Digest("SHA-1: "+strings.ToUpper(hex.EncodeToString(raw1)))), "")}},
			map[string]string{"/r": "f0 #0"}},
		"by digest, in lower case": {[][]string{{original, text("revisit /r 05:00", identical+digest(warc.Digest("sha1:"+strings.ToLower(sha1))), "")}}, map[string]string{"/r": "f0 #0"}},
		"by digest, SHA-256 padded or not": {[][]string{{text("response /body 02:03", digest("sha256:"+warc.Digest(hex.EncodeToString(sum256[:]))), ""),
			text("revisit /r 05:00", identical+digest("sha-256:"+warc.Digest(base32.StdEncoding.EncodeToString(sum256[:]))), ""),
			text("revisit /s 05:00", identical+digest("sha256:"+warc.Digest(strings.TrimRight(base32.StdEncoding.EncodeToString(sum256[:]), "="))), "")}},
			map[string]string{"/r": "f0 #0", "/s": "f0 #0"}},
		"by digest, MD5": {[][]string{{text("response /body 02:03", digest("md5:"+warc.Digest(hex.EncodeToString(sumMD5[:]))), ""),
			text("revisit /r 05:00", identical+digest("MD5:"+warc.Digest(base64.StdEncoding.EncodeToString(sumMD5[:]))), "")}}, map[string]string{"/r": "f0 #0"}},
		"not by the digest of an unknown algorithm": {[][]string{{text("response /body 02:03", digest("crc32:00000000"), ""), text("revisit /r 05:00", identical+digest("crc32:00000000"), "")}},
			map[string]string{"/r": noFile}},
		"of records with the digest, one of the URL": {[][]string{{text("response /z 00:00", sha1Of(body), ""), text("response /a 00:01", sha1Of(body), ""), text("response /r 00:02", sha1Of(body), ""),
			text("revisit /r 05:00", identical+sha1Of(body), "")}}, map[string]string{"/r": "f0 #2"}},
		"of records with the digest, a whole one": {[][]string{{text("response /r 00:00", "WARC-Truncated: length\r\n"+sha1Of(body), ""), text("response /z 00:01", sha1Of(body), ""),
			text("revisit /r 05:00", identical+"WARC-Truncated: length\r\n"+sha1Of(body), "")}}, map[string]string{"/r": "f0 #1"}},
		"a truncated original":     {[][]string{{text("response /r 00:00", "WARC-Truncated: length\r\n"+sha1Of(body), ""), text("revisit /r 05:00", identical+sha1Of(body), "")}}, map[string]string{"/r": "f0 #0"}},
		"an empty payload":         {[][]string{{text("response /body 02:03", sha1Of(""), status200), text("revisit /r 05:00", identical+sha1Of(""), "")}}, map[string]string{"/r": "f0 #0"}},
		"another payload":          {[][]string{{original, text("revisit /r 05:00", identical+sha1Of("other"), "")}}, map[string]string{"/r": noFile}},
		"nothing but the profile":  {[][]string{{original, text("revisit /body 05:00", identical, "")}}, map[string]string{"/body": noFile}},
		"no profile, but a digest": {[][]string{{original, text("revisit /r 05:00", sha1Of(body), "")}}, map[string]string{"/r": "f0 #0"}},

		"by ID":                              {[][]string{{original, text("revisit /r 05:00", identical+refers("02:03/body", "", ""), "")}}, map[string]string{"/r": "f0 #0"}},
		"by ID, with the digest of another":  {[][]string{{original, text("revisit /r 05:00", identical+refers("02:03/body", "", "")+sha1Of("other"), "")}}, map[string]string{"/r": noFile}},
		"by ID, with another algorithm":      {[][]string{{original, text("revisit /r 05:00", identical+refers("02:03/body", "", "")+digest("sha256:"+warc.Digest(hex.EncodeToString(sum256[:]))), "")}}, map[string]string{"/r": "f0 #0"}},
		"by ID that is lost, then by digest": {[][]string{{original, text("revisit /r 05:00", identical+refers("lost", "", "")+sha1Of(body), "")}}, map[string]string{"/r": "f0 #0"}},
		"by URL and date, without digests": {[][]string{{text("response /body 02:03.25", "", ""), text("response /body 02:04", "", ""), text("revisit /r 05:00", identical+refers("", "/body", "02:03"), "")}},
			map[string]string{"/r": "f0 #0"}},
		"by URL and another date":           {[][]string{{original, text("revisit /r 05:00", identical+refers("", "/body", "02:02"), "")}}, map[string]string{"/r": noFile}},
		"by date alone, of the same URL":    {[][]string{{original, text("revisit /body 05:00", unmodified+refers("", "", "02:03"), status304)}}, map[string]string{"/body": "f0 #0"}},
		"by URL and date, before the crawl": {[][]string{{text("revisit /r 01:00", identical+refers("", "/body", "02:03"), ""), original}}, map[string]string{"/r": "f0 #1"}},
		"a URL without a date":              {[][]string{{original, text("revisit /r 05:00", identical+refers("", "/body", ""), "")}}, map[string]string{"/r": noFile}},

		"a 304 that names nothing, of the newest document before it": {[][]string{{text("response /body 04:00", sha1Of("b"), ""), original, text("revisit /body 05:00", unmodified, status304), text("response /body 06:00", "", "")}},
			map[string]string{"/body": "f0 #0"}},
		"a 304 of a URL without a document before it": {[][]string{{text("revisit /body 01:00", unmodified, status304), original, text("response /body 00:01", "", "HTTP/1.1 404 Not Found\r\n\r\n")}},
			map[string]string{"/body": noFile}},
		"a 304 that names its own URL (HTTrack)":              {[][]string{{original, text("revisit /body 05:00", unmodified0+refers("", "/body", ""), status200)}}, map[string]string{"/body": "f0 #0"}},
		"a 304 with the digest of its empty body (HER-2080)":  {[][]string{{original, text("revisit /body 05:00", unmodified0+sha1Of(""), "")}}, map[string]string{"/body": "f0 #0"}},
		"a 304 with the digest of its document":               {[][]string{{original, text("response /body 03:00", sha1Of("new"), ""), text("revisit /body 05:00", unmodified+sha1Of(body), "")}}, map[string]string{"/body": "f0 #0"}},
		"a 304 that names a record of no file":                {[][]string{{original, text("revisit /body 05:00", unmodified+refers("lost", "", ""), status304)}}, map[string]string{"/body": noFile}},
		"a 304 after a document that can only be read partly": {[][]string{{original, text("response /body 03:00", "", "HTTP/1.1 206 Partial Content\r\n\r\nbo"), text("revisit /body 05:00", unmodified, status304)}}, map[string]string{"/body": neither}},
		"a 304 after a revisit": {[][]string{{original, text("response /new 00:00", sha1Of("new"), ""), text("revisit /body 03:00", identical+sha1Of("new"), status200), text("revisit /body 05:00", unmodified, status304)}},
			map[string]string{"/body": "f0 #1", "/body again": "f0 #1"}},
		"a 304 after a revisit that is not resolved": {[][]string{{original, text("revisit /body 03:00", identical+sha1Of("new"), status200), text("revisit /body 05:00", unmodified, status304)}},
			map[string]string{"/body": noFile, "/body again": neither}},
		"304s, one after another, in the same second": {[][]string{{original, text("revisit /body 03:00", unmodified, status304), text("revisit /body 03:00", unmodified, "")}},
			map[string]string{"/body": "f0 #0", "/body again": "f0 #0"}},

		"a segmented original": {[][]string{{text("response /body 02:03", "WARC-Segment-Number: 1\r\n"+sha1Of(body), ""), text("revisit /r 05:00", identical+sha1Of(body), "")}}, map[string]string{"/r": neither}},

		"a revisit of a revisit": {[][]string{{original, text("revisit /r 05:00", identical+refers("02:03/body", "", ""), ""), text("revisit /s 06:00", identical+refers("05:00/r", "", ""), "")},
			{text("revisit /t 07:00", identical+refers("", "/s", "06:00"), "")}}, map[string]string{"/r": "f0 #0", "/s": "f0 #0", "/t": "f0 #0"}},
		"a revisit of a revisit that is not resolved": {[][]string{{original, text("revisit /r 05:00", identical+refers("lost", "", ""), ""), text("revisit /s 06:00", identical+refers("05:00/r", "", ""), "")}},
			map[string]string{"/r": noFile, "/s": neither}},
		"revisits of each other": {[][]string{{original, text("revisit /r 05:00", identical+refers("06:00/s", "", ""), ""), text("revisit /s 06:00", identical+refers("05:00/r", "", ""), "")}},
			map[string]string{"/r": circle, "/s": circle}},
		"a revisit of itself": {[][]string{{original, text("revisit /r 05:00", identical+refers("05:00/r", "/r", "05:00"), status200), text("revisit /s 05:00", identical+refers("", "/s", "05:00")+sha1Of(body), status200)}},
			map[string]string{"/r": noFile, "/s": "f0 #0"}},
		"a revisit of a part": {[][]string{{original, text("revisit /r 05:00", identical+sha1Of(body), "HTTP/1.1 206 Partial Content\r\n\r\n")}}, map[string]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, resolvedIn(t, nil, c.files...)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// No other URL gets the payload of one that was taken down.
func TestRevisitsOfWhatWasTakenDown(t *testing.T) {
	const secret = "0123456789abcdef0123456789abcdef"
	b, _ := archive(t)
	names, err := takedown.New([]string{"http://a.test/body"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	k, err := takedown.NewKey(secret)
	if err == nil {
		err = takedown.Append(t.Context(), b, k, names, manifest.Takedown{At: "2026-11-26T00:00:00Z", Reason: "asked"})
	}
	if err != nil {
		t.Fatal(err)
	}
	gone, err := takedown.Open(t.Context(), b, secret)
	if err != nil {
		t.Fatal(err)
	}
	got := resolvedIn(t, gone, []string{text("response /body 02:03", sha1Of("body"), ""), text("revisit /r 05:00", identical+sha1Of("body"), "")})
	if diff := cmp.Diff(map[string]string{"/r": neither}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A chain is resolved up to a length, so that hostile archives cannot make the plan read its index again and again.
func TestChainsOfRevisits(t *testing.T) {
	file := []string{text("response /body 02:03", "", "")}
	last := "02:03/body"
	for i := range 20 {
		path := fmt.Sprintf("/%02d", i)
		file = append(file, text("revisit "+path+" 05:00", identical+refers(last, "", ""), ""))
		last = "05:00" + path
	}
	got := resolvedIn(t, nil, file)
	for path, place := range got {
		resolved := path < fmt.Sprintf("/%02d", mostRounds)
		if resolved != (place == "f0 #0") || !resolved && !strings.Contains(place, "deep") {
			t.Errorf("%s: %s", path, place)
		}
	}
	if len(got) != 20 {
		t.Errorf("%d revisits", len(got))
	}
}

// A 304 that names nothing has the payload of the newest document before it, however many there are.
func TestManyNotModifiedInARow(t *testing.T) {
	file := []string{text("response /body 02:00", "", "")}
	for i := range 3 * mostRounds {
		file = append(file, text(fmt.Sprintf("revisit /body 05:%02d", i), unmodified, status304))
	}
	got := resolvedIn(t, nil, file)
	for at, place := range got {
		if place != "f0 #0" {
			t.Errorf("%s: %s", at, place)
		}
	}
	if len(got) == 0 {
		t.Error("no revisit")
	}
}

// With many revisits, the sorters write to scratch files. The result is the same, and no file remains.
func TestManyRevisits(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	scratch := t.TempDir()
	x, err := newIndex(scratch)
	if err != nil {
		t.Fatal(err)
	}
	defer x.close()
	const n = 300_000
	for i := range n {
		name := hash(fmt.Sprint(i / 3))
		c := captured{ID: hash(fmt.Sprint("id", i)), URL: hash(fmt.Sprint("url", i)), Digest: "sha1:" + name, At: int64(i), Document: true, Offset: int64(i), Length: 1}
		what := &indexed{captured: &c}
		if i%3 != 1 { // of each three, the one in the middle is the original
			what = &indexed{revisit: &revisit{captured: c}}
		}
		if err := x.add(what, i%7); err != nil {
			t.Fatal(err)
		}
	}
	told := 0
	err = x.resolve(t.Context(), func(r *revisit, payload *captured, why string) error {
		told++
		if want := r.Offset/3*3 + 1; why != "" || payload.Offset != want || payload.File != int32(want%7) {
			t.Fatalf("%+v: %+v, %s", r, payload, why)
		}
		return nil
	})
	if err != nil || told != n/3*2 {
		t.Errorf("%d revisits: %v", told, err)
	}
	x.close()
	if left, err := os.ReadDir(scratch); err != nil || len(left) > 0 {
		t.Errorf("%d files remain: %v", len(left), err)
	}
}

// FuzzRevisit reads headers of any content in a revisit. Each is told, resolved or not.
func FuzzRevisit(f *testing.F) {
	f.Add("sha1:MFRGGZA", "<urn:02:03/body>", "http://a.test/body", "2024-05-05T01:02:03Z", identical, status200)
	f.Add("md5:", "", "http://a.test/body", "2024", unmodified, "")
	f.Add("sha256:00", "x", "", "", "", "HTTP/1.1 206\r\n\r\n")
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, digest, id, uri, date, fields, block string) {
		for _, v := range []string{digest, id, uri, date} {
			if strings.ContainsAny(v, "\r\n") {
				t.Skip()
			}
		}
		fields = "WARC-Payload-Digest: " + digest + "\r\nWARC-Refers-To: " + id + "\r\nWARC-Refers-To-Target-URI: " + uri + "\r\nWARC-Refers-To-Date: " + date + "\r\n" + strings.TrimSpace(fields) + "\r\n"
		file := text("response /body 02:03", sha1Of("body"), "") + text("revisit /body 05:00", fields, block)
		w := &warcFiles{}
		x, err := newIndex(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer x.close()
		r, revisits := warc.NewReader(strings.NewReader(file), warc.ReaderOptions{}), 0
		for n := int64(1); ; n++ {
			got, _, err := w.next(r, "f.warc", n)
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if got.index == nil {
				continue
			}
			if got.index.revisit != nil {
				revisits++
			}
			if err := x.add(got.index, 0); err != nil {
				t.Fatal(err)
			}
		}
		err = x.resolve(t.Context(), func(r *revisit, payload *captured, why string) error {
			revisits--
			if e := r.entry([]string{"f.warc"}, payload, why); (payload == nil) != (why != "") || e.URL == "" || (e.Broken == "") != (e.Content.PayloadLength > 0) {
				t.Errorf("%+v: %+v, %q", e, payload, why)
			}
			return nil
		})
		if err != nil || revisits != 0 {
			t.Errorf("%d revisits are not told: %v", revisits, err)
		}
	})
}
