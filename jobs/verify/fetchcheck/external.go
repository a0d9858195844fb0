package fetchcheck

import (
	"fmt"
	"io"
	"strings"

	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/formats/warc"
	"crawlbatch.io/crawlbatch/jobs/worker"
	stored "crawlbatch.io/crawlbatch/stages/fetch/records"
	"crawlbatch.io/crawlbatch/stages/fetch/wire"
)

// describesExternal says how an external record differs from the response in a capture's row. It
// returns "" if they agree. Such records may lack digests, so it computes the payload's digest in
// the same way as the parse did.
func (c *archive) describesExternal(m *mention) (problem string, err error) {
	if c.Config == nil {
		return "", nil // the limit on bodies is unknown
	}
	if problem := c.beyond(m); problem != "" {
		return problem, nil
	}
	cfg := worker.FetchConfig(c.Config, "")
	parser, err := worker.NewParser(c.Config)
	if err != nil {
		return "", err
	}
	e, err := warc.ReadAt(&c.window, warc.Extent{Offset: int64(m.Offset), Length: int64(m.Length)}, warc.ReaderOptions{})
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
		return fmt.Sprintf("the record has the URL %s, the row %s", e.TargetURI(), m.URL), nil
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
