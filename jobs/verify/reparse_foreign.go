package verify

import (
	"context"
	"fmt"
	"io"
	"strings"

	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/formats/warc"
	"crawlbatch.io/crawlbatch/jobs/worker"
	stored "crawlbatch.io/crawlbatch/stages/fetch/records"
	"crawlbatch.io/crawlbatch/stages/fetch/wire"
)

// enterForeign opens a WARC file of others, which has no index of ours beside it.
func (c *archive) enterForeign(ctx context.Context, key string) error {
	obj, err := c.foreign.Open(ctx, key)
	if err != nil {
		return c.fault(err, 4, records, c.round.number, key)
	}
	c.object, c.window = obj, window{r: obj, size: obj.Size()}
	return nil
}

// describesForeign says in what a record of others is not the response that the row of
// a capture describes. Such records need have no digests: the payload is compared as
// it was read when it was parsed.
func (c *archive) describesForeign(m *mention) (problem string, err error) {
	if c.Config == nil {
		return "", nil // how much of a body counts is not known
	}
	offset, length := int64(m.Offset), int64(m.Length)
	if offset < 0 || length <= 0 || offset+length > c.window.size {
		return fmt.Sprintf("%d bytes at %d are not within the file of %d bytes", length, offset, c.window.size), nil
	}
	cfg := worker.FetchConfig(c.Config, "")
	parser, err := worker.NewParser(c.Config)
	if err != nil {
		return "", err
	}
	e, err := warc.ReadAt(&c.window, warc.Extent{Offset: offset, Length: length}, warc.ReaderOptions{})
	var block []byte
	if err == nil {
		block, err = io.ReadAll(io.LimitReader(e, stored.BlockLimit(cfg.Longest())))
	}
	switch {
	case c.window.err != nil:
		return "", c.window.err
	case err != nil:
		return err.Error(), nil
	case e.Type != warc.Response:
		return fmt.Sprintf("the record is a %s, not a response", e.Type), nil
	}
	canon, err := urlkey.New(c.Config.Plan.StripParams)
	if err != nil {
		return "", err
	}
	if k, err := canon.Canonical(e.TargetURI(), ""); err != nil || k.URL != m.URL {
		return fmt.Sprintf("the record is of %s, the row of %s", e.TargetURI(), m.URL), nil
	}
	x, err := wire.Replay(block, strings.HasPrefix(m.URL, "https:"), cfg.Replay(parser))
	defer x.Release()
	if err != nil {
		return err.Error(), nil
	}
	if got := warc.Digest(x.PayloadDigest).Value(); got != m.Digest {
		return fmt.Sprintf("its payload has the digest %s, the row says %s", got, m.Digest), nil
	}
	return "", nil
}
