package fetch

import (
	"context"
	"errors"
	"fmt"

	"crawlbatch.io/crawlbatch/stages/fetch/polite"
	"crawlbatch.io/crawlbatch/stages/fetch/wire"
)

// failure is what the columns error and error_detail say: a phrase that many URLs
// share, and what is this one's own.
type failure struct{ phrase, detail string }

// failed is a failure with a formatted detail.
func failed(phrase, format string, args ...any) failure {
	return failure{phrase, fmt.Sprintf(format, args...)}
}

func (f failure) String() string {
	if f.detail == "" {
		return f.phrase
	}
	return f.phrase + ": " + f.detail
}

// phrases are the failures that the crawl itself gives to a request.
var phrases = []struct {
	is     error
	phrase string
}{
	{errLapsed, "right to fetch lapsed"},
	{errStale, "kept connection was closed"},
	{polite.ErrNotDue, "host not due any more"},
	{wire.ErrNoRoom, "no memory for the body"},
	{errAddressNotDue, "address not due"},
	{context.Canceled, "task stopped"},
}

// failureOf puts the error of a request into words.
func failureOf(err error) failure {
	var e *wire.Error
	switch {
	case err == nil:
		return failure{}
	case errors.Is(err, wire.ErrAborted):
		for _, p := range phrases {
			if errors.Is(err, p.is) {
				return failure{phrase: "broken off: " + p.phrase}
			}
		}
		return failure{"broken off", err.Error()}
	case errors.As(err, &e):
		phrase, detail := e.Words()
		return failure{phrase, detail}
	}
	return failure{"internal error", err.Error()}
}
