package verify

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table/tabletest"
	"crawlbatch.io/crawlbatch/formats/warc"
	"crawlbatch.io/crawlbatch/stages"
)

// older is the key of a WARC file of an earlier crawl. A revisit refers to a record in this file.
const older = "warc/crawl=2025-11/round=0/part-00000-e1-00000.warc.gz"

// makeRevisit turns the first document of the crawl into a revisit of a document in an earlier crawl,
// and corrects all references to it.
func makeRevisit(d *damagedCrawl, profile string) {
	d.t.Helper()
	key := warcOf(d)
	pages := tabletest.Read[schema.Page](d.t, d.b, part(stages.FilePages))
	was := pages[firstRow(d, pages, func(i int) bool { return pages[i].WARCFilename == key })].CaptureColumns
	body := d.body(key)
	member := bytes.Clone(body[was.WARCRecordOffset : was.WARCRecordOffset+was.WARCRecordLength])
	if _, err := store.CreateBytes(d.t.Context(), d.b, older, member); err != nil {
		d.t.Fatal(err)
	}
	e, err := warc.NewReader(bytes.NewReader(member), warc.ReaderOptions{}).Next()
	if err != nil {
		d.t.Fatal(err)
	}
	url, digest := e.TargetURI(), e.Header.Get(warc.FieldPayloadDigest)

	file := bytes.NewBuffer(bytes.Clone(body))
	w := warc.NewWriter(file)
	at, err := w.Write(&warc.Record{
		Type: warc.Revisit, Date: was.FetchTime.Time(), TargetURI: url, PayloadDigest: warc.Digest(digest), Profile: profile,
		RefersToURI: url, RefersToDate: was.FetchTime.Time().AddDate(-1, 0, 0), Block: [][]byte{[]byte("HTTP/1.1 200 OK\r\n\r\n")},
	})
	if err != nil {
		d.t.Fatal(err)
	}
	at.Offset += int64(len(body))
	d.replace(key, file.Bytes())
	d.settle(key)
	index := layout.CDXJ(key)
	line := func(length, offset int64) []byte {
		return fmt.Appendf(nil, `"length":"%d","offset":"%d"`, length, offset)
	}
	d.replace(index, bytes.Replace(d.body(index), line(int64(was.WARCRecordLength), int64(was.WARCRecordOffset)), line(at.Length, at.Offset), 1))
	d.settle(index)
	change(d, captures(schema.SubsetWARC), func(rows []schema.Capture) []schema.Capture {
		c := &rows[firstRow(d, rows, func(i int) bool { return rows[i].URL == url })]
		c.WARCRecordOffset, c.WARCRecordLength = int32(at.Offset), int32(at.Length)
		c.Revisit, c.PayloadFilename, c.PayloadRecordLen = schema.RevisitIdentical, older, int32(len(member))
		return rows
	})
	change(d, part(stages.FileFetches), func(rows []schema.Fetch) []schema.Fetch {
		for i := range rows {
			if f := &rows[i]; f.WARCFilename == key && f.WARCRecordOff == was.WARCRecordOffset {
				f.WARCRecordOff, f.WARCRecordLen, f.Revisit = int32(at.Offset), int32(at.Length), schema.RevisitIdentical
			}
		}
		return rows
	})
	change(d, part(stages.FilePages), func(rows []schema.Page) []schema.Page {
		p := &rows[firstRow(d, rows, func(i int) bool { return rows[i].URL == url })]
		p.WARCFilename, p.WARCRecordOffset = older, 0
		return rows
	})
}

func TestARevisitOfAnEarlierCrawlIsAsPromised(t *testing.T) {
	d := copyCrawl(t)
	makeRevisit(d, warc.ProfileIdenticalPayload)
	for _, v := range d.audit().Violations {
		t.Errorf("%+v", v)
	}
}

func TestDamageToRevisitsIsFound(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-crawl")
	}
	of := func(change func(*schema.Capture)) func(rows []schema.Capture) []schema.Capture {
		return func(rows []schema.Capture) []schema.Capture {
			for i := range rows {
				if rows[i].Revisit != "" {
					change(&rows[i])
				}
			}
			return rows
		}
	}
	damage := func(f func(*schema.Capture)) func(d *damagedCrawl) {
		return func(d *damagedCrawl) { change(d, captures(schema.SubsetWARC), of(f)) }
	}
	cases := damages{}
	for name, c := range map[string]struct {
		profile string
		damage  func(*damagedCrawl)
		want    map[string]string
	}{
		"the payload is not where the row says": {"", damage(func(c *schema.Capture) { c.PayloadRecordOff++ }),
			map[string]string{records: older, pointers: part(stages.FilePages)}},
		"the file with the payload is gone": {"", func(d *damagedCrawl) { d.delete(older) }, one(records, older)},
		"the record with the payload is damaged": {"", func(d *damagedCrawl) {
			body := bytes.Clone(d.body(older))
			body[len(body)/2] ^= 0x20
			d.replace(older, body)
		}, one(records, older)},
		"the row says that the record holds it": {"", damage(func(c *schema.Capture) { c.Revisit, c.PayloadFilename = "", "" }),
			map[string]string{records: "", pointers: part(stages.FilePages)}},
		"the record is of another profile": {warc.ProfileNotModified, nil, one(records, "")},
		"the payload is another": {"", func(d *damagedCrawl) {
			var file bytes.Buffer
			w := warc.NewWriter(&file)
			at, err := w.Write(&warc.Record{
				Type: warc.Response, Date: time.Unix(1, 0), TargetURI: "http://other.example/", PayloadDigest: warc.DigestOf([]byte("other")),
				Block: [][]byte{[]byte("HTTP/1.1 200 OK\r\n\r\nother")},
			})
			if err != nil {
				d.t.Fatal(err)
			}
			d.replace(older, file.Bytes())
			change(d, captures(schema.SubsetWARC), of(func(c *schema.Capture) { c.PayloadRecordLen = int32(at.Length) }))
			change(d, part(stages.FilePages), func(rows []schema.Page) []schema.Page {
				for i := range rows {
					if rows[i].WARCFilename == older {
						rows[i].WARCRecordLength = int32(at.Length)
					}
				}
				return rows
			})
		}, one(records, older)},
	} {
		cases[name] = func(d *damagedCrawl) map[string]string {
			profile := c.profile
			if profile == "" {
				profile = warc.ProfileIdenticalPayload
			}
			makeRevisit(d, profile)
			if c.damage != nil {
				c.damage(d)
			}
			return c.want
		}
	}
	findEach(t, cases)
}
