package domains

import (
	"context"
	"errors"
	"strings"

	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/stages"
)

// kind says what a figure counts, and what its number and text mean.
type kind = int32

// Figures of outcomes come first, because they tell which partition the domain belongs to.
const (
	outcomes            kind = iota // planned URLs by the index of their outcome in schema.Outcomes
	counts                          // number is one of the counts below
	languages                       // pages by the language in text
	blockers                        // planned URLs with outcome blocked, by the service in text
	robotsFiles                     // hosts by the digest in text
	firstKindOfRequests             // the following kinds count only requests of the domain's own partition
	requestCounts                   // as counts
	firstBytes                      // responses by the bin of their time to first byte
	totals                          // responses by the bin of their total time
	delays                          // requests by the delay in force, milliseconds
	addresses                       // requests by the address in text
	networks                        // requests by the network in text
)

// The counts of the kinds counts and requestCounts.
const (
	forbidden int32 = iota // planned URLs with status 401, 403 or 451
	pages
	newPages
	changedPages
	indexablePages
	challenges
	contentBytes
	exactDuplicates
	nearDuplicates
	requests
	failedRequests
	receivedBytes
	requestMS
	numCounts
)

// figure is the name of one number of a domain.
type figure struct {
	Kind   kind
	Number int32
	Text   string
}

// fact adds N to a figure of a domain.
type fact struct {
	Domain    string
	Partition int32 // partition whose rows gave the fact
	Kind      kind
	Number    int32
	Text      string
	N         int64
}

func (f *fact) figure() figure { return figure{f.Kind, f.Number, f.Text} }

func factKey(k table.Key, f *fact) table.Key {
	return k.Text(f.Domain).Int(int64(f.Kind)).Int(int64(f.Number)).Text(f.Text)
}

// mostFigures bounds the figures that are added up before they are sorted.
const mostFigures = 4096

// adder adds up the facts of neighbouring rows of one domain, and passes the sums to a sorter.
type adder struct {
	to        *table.Sorter[fact]
	partition int32
	domain    string
	sums      map[figure]int64
	err       error
}

// begin says to which domain the following calls of add belong.
func (a *adder) begin(domain string) {
	if domain != a.domain || len(a.sums) > mostFigures {
		a.flush()
		a.domain = strings.Clone(domain)
	}
}

// add adds n to a figure of the domain.
func (a *adder) add(k kind, number int32, n int64) { a.sums[figure{Kind: k, Number: number}] += n }

// addText adds 1 to a figure with a text.
func (a *adder) addText(k kind, text string) {
	f := figure{Kind: k, Text: text}
	if _, known := a.sums[f]; !known {
		f.Text = strings.Clone(text)
	}
	a.sums[f]++
}

// addIf adds 1 to a count if the condition holds.
func (a *adder) addIf(condition bool, k kind, number int32) {
	if condition {
		a.add(k, number, 1)
	}
}

// flush passes the sums to the sorter. Their order does not matter, because equal figures are added.
func (a *adder) flush() {
	for f, n := range a.sums {
		if a.err == nil {
			a.err = a.to.Add(&fact{a.domain, a.partition, f.Kind, f.Number, f.Text, n})
		}
	}
	clear(a.sums)
}

// eachRow calls use with each row of the objects, and then flushes the sums.
func eachRow[T any](ctx context.Context, env *stages.Env, a *adder, keys []string, use func(*T)) error {
	for row, err := range table.Concat[T](ctx, env.Bucket, keys) {
		if err == nil {
			err = a.err
		}
		if err != nil {
			return err
		}
		use(&row)
	}
	a.flush()
	return errors.Join(ctx.Err(), a.err)
}
