package fetch

import (
	"path/filepath"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/formats/layout"
	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/stages"
)

// What a successor takes over, and how it begins.

// crawlOf makes a crawl of the lab's partition that was given nothing to do yet.
func (l *lab) crawlOf() *crawl {
	l.t.Helper()
	scratch := l.t.TempDir()
	env := l.env(l.bucket, scratch)
	p, err := loadPlanned(l.t.Context(), l.bucket, l.plan.Partitions[0].File, scratch)
	if err != nil {
		l.t.Fatal(err)
	}
	c, err := newCrawl(env, l.cfg, l.parser, p, nil)
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() {
		c.client.Close()
		if err := p.Close(); err != nil {
			l.t.Error(err)
		}
	})
	return c
}

// robotsSegment stores what a segment says of robots.txt files.
func (l *lab) robotsSegment(epoch, number int, rows ...schema.RobotsFile) manifest.File {
	l.t.Helper()
	w, err := table.NewWriter[schema.RobotsFile](filepath.Join(l.t.TempDir(), "robots.parquet"))
	if err != nil {
		l.t.Fatal(err)
	}
	if err := w.Write(rows); err != nil {
		l.t.Fatal(err)
	}
	f, err := table.Finish(l.t.Context(), w, l.bucket, stages.FileRobots, layout.Segment("2026-11", 0, l.planID, 0, epoch, number, stages.FileRobots))
	if err != nil {
		l.t.Fatal(err)
	}
	return f
}

func TestOfWhatIsKnownOfARobotsFileTheLatestCounts(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLab(t, nil, "http://a.com/", "http://b.org/", "http://c.net/")
		hour := time.Now().Add(time.Hour).UnixMilli()
		known := func(origin string) schema.RobotsFile { return schema.RobotsFile{Origin: origin, Until: hour} }
		failed := func(origin string) schema.RobotsFile {
			return schema.RobotsFile{Origin: origin, Outcome: schema.InternalError, Failure: "robots.txt: died"}
		}
		d := &manifest.Checkpoint{}
		// A segment that was listed later was also written later, whatever its key sorts as.
		for _, f := range []manifest.File{
			l.robotsSegment(9, 99999, known("http://a.com"), failed("http://c.net")),
			l.robotsSegment(10, 0, failed("http://a.com"), known("http://b.org")),
			l.robotsSegment(10, 1, failed("http://b.org")),
			l.robotsSegment(100, 0, known("http://c.net")),
		} {
			g := newSegment("")
			g.files = []manifest.File{f}
			if err := list(d, g); err != nil {
				t.Fatal(err)
			}
		}
		c := l.crawlOf()
		if err := c.restoreRobots(t.Context(), l.bucket, d.Files); err != nil {
			t.Fatal(err)
		}
		for origin, want := range map[string]robotsState{"http://a.com": robotsFailed, "http://b.org": robotsFailed, "http://c.net": robotsKnown} {
			if got := c.origins[origin].state; got != want {
				t.Errorf("%s: state %d, want %d", origin, got, want)
			}
		}
	})
}
