package fetch

import (
	"context"
	"errors"

	"crawlbatch.io/crawlbatch/stages/fetch/polite"
	"crawlbatch.io/crawlbatch/stages/fetch/response"
	"crawlbatch.io/crawlbatch/stages/fetch/wire"
)

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
func failureOf(err error) response.Failure {
	var e *wire.Error
	switch {
	case err == nil:
		return response.Failure{}
	case errors.Is(err, wire.ErrAborted):
		for _, p := range phrases {
			if errors.Is(err, p.is) {
				return response.Failure{Phrase: "broken off: " + p.phrase}
			}
		}
		return response.Failure{Phrase: "broken off", Detail: err.Error()}
	case errors.As(err, &e):
		phrase, detail := e.Words()
		return response.Failure{Phrase: phrase, Detail: detail}
	}
	return response.Failure{Phrase: "internal error", Detail: err.Error()}
}
