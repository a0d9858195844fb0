package response

import (
	"crawlbatch.io/crawlbatch/stages/fetch/robots"
	"crawlbatch.io/crawlbatch/stages/fetch/wire"
	"crawlbatch.io/crawlbatch/stages/fetch/wire/coding"
)

// RobotsText returns the text of a robots.txt with status 2xx. An error means that what it says is not known, as if
// it could not be fetched. The text may share memory with the exchange.
func RobotsText(x *wire.Exchange) ([]byte, error) {
	return coding.Text(&x.Response, &x.Decoded, robots.MaxBytes)
}
