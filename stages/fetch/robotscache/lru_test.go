package robotscache

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/stages/fetch/robots"
)

func TestRulesThatWaitInScratchAreTheSame(t *testing.T) {
	dir := t.TempDir()
	l := lru{dir: dir, max: 20_000}
	defer l.close()
	r := rand.New(rand.NewPCG(1, 1))
	var origins []*Entry
	for i := range 300 {
		body := fmt.Sprintf("User-agent: *\nDisallow: /of-%d\nCrawl-delay: %d\n%s", i, i, strings.Repeat(fmt.Sprintf("Allow: /%d/x\n", i), i%20))
		e := &Entry{}
		e.rules = &Rules{Group: robots.Parse([]byte(body)).GroupFor("bot"), Digest: fmt.Sprint(i)}
		origins = append(origins, e)
		if err := l.put(e); err != nil {
			t.Fatal(err)
		}
		if l.held > l.max {
			t.Fatalf("%d bytes are held, %d are allowed", l.held, l.max)
		}
	}
	inMemory := func() (n int) {
		for _, o := range origins {
			if o.rules.Group != nil {
				n++
			}
		}
		return n
	}
	if n := inMemory(); n == 0 || n > 200 {
		t.Errorf("the rules of %d of 300 origins are in memory", n)
	}
	for range 2000 {
		i := r.IntN(300)
		known, err := l.get(origins[i])
		if err != nil {
			t.Fatal(err)
		}
		if d, _ := known.Delay(); known.Digest != fmt.Sprint(i) || known.Verdict(fmt.Sprintf("http://h/of-%d", i)).Allowed || int(d.Seconds()) != i {
			t.Fatalf("the rules of entry %d have changed", i)
		}
		switch r.IntN(20) {
		case 0:
			l.drop(origins[i])
			if err := l.put(origins[i]); err != nil {
				t.Fatal(err)
			}
		}
		if l.held > l.max {
			t.Fatalf("%d bytes are held, %d are allowed", l.held, l.max)
		}
	}
	if l.recent.Len() != inMemory() {
		t.Errorf("the list has %d entries, but the rules of %d are in memory", l.recent.Len(), inMemory())
	}
	for _, o := range origins {
		l.drop(o)
	}
	if l.held != 0 || l.recent.Len() != 0 {
		t.Errorf("after all were dropped %d bytes of %d origins are held", l.held, l.recent.Len())
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("scratch files are left: %v, %v", left, err)
	}
}
