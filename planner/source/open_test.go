package source

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/formats/store"
)

func TestOpenChoosesTheSourceByItsScheme(t *testing.T) {
	ctx, file := t.Context(), write(t, "u.txt", []byte("http://a.example/\n"))
	var asked []string
	o := Options{Schemes: map[string]Opener{"mysql": func(_ context.Context, name string, _ Options) (Source, error) {
		asked = append(asked, name)
		return Files(file, nil)
	}}}
	sources, frontier, err := OpenAll(ctx, []string{file, "mysql://u:secret@db/urls", FrontierName}, o)
	if err != nil || len(sources) != 2 || !frontier || !slices.Equal(asked, []string{"mysql://u:secret@db/urls"}) {
		t.Errorf("%d sources, frontier %t, asked for %q, %v", len(sources), frontier, asked, err)
	}
	o.Bucket = func(_ context.Context, address string) (store.Bucket, error) {
		asked = append(asked, address)
		return nil, nil
	}
	_, _, err = OpenAll(ctx, []string{"MYSQL://db/urls", "S3://bucket/u.txt", "s3://bucket/u.txt"}, o)
	if want := []string{"MYSQL://db/urls", "s3://bucket", "s3://bucket"}; err != nil || !slices.Equal(asked[1:], want) {
		t.Errorf("schemes in capitals: asked for %q, %v", asked[1:], err)
	}
	_, _, err = OpenAll(ctx, []string{"mysq://u:secret@db/urls"}, o)
	if !errors.Is(err, ErrMissing) || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "mysql") {
		t.Errorf("unknown scheme: %v", err)
	}
}
