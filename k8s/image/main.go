// Command image packs crawlbatch's binary into a container image, without a daemon and without a
// registry. `make image` runs the command.
//
// The input is a static Linux binary. The output is an image archive in the format of `docker save`, for
// `docker load`, `ctr images import` and the tools of registries. The image contains only the binary and runs
// as user 65532. Equal binaries give equal archives, because an archive does not contain the time, or a name
// or path of the machine.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

func main() {
	var o options
	flag.StringVar(&o.binary, "binary", "", "static Linux binary to pack")
	flag.StringVar(&o.arch, "arch", "", "architecture of the binary, as GOARCH has it")
	flag.StringVar(&o.tag, "tag", "", "name:tag of the image")
	flag.StringVar(&o.out, "o", "", "archive to write")
	flag.Parse()
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
	fmt.Printf("%s: %s, linux/%s\n", o.out, o.tag, o.arch)
}

type options struct {
	binary, arch string
	tag, out     string
}

// run writes the image archive. It replaces the file o.out only when the archive is complete.
func run(o options) error {
	tag, err := name.NewTag(o.tag)
	if err != nil {
		return fmt.Errorf("-tag %q: %w: write name:tag, or set IMAGE=name:tag", o.tag, err)
	}
	body, err := os.ReadFile(o.binary)
	if err != nil {
		return fmt.Errorf("-binary: %w", err)
	}
	if err := check(body, o.arch); err != nil {
		return fmt.Errorf("-binary %q: %w", o.binary, err)
	}
	img, err := pack(body, o.arch)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(o.out), filepath.Base(o.out)+"-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // after an error; after the rename, there is nothing to remove
	err = tarball.Write(tag, img, f)
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err != nil {
		return fmt.Errorf("write %q: %w", o.out, err)
	}
	return os.Rename(f.Name(), o.out)
}
