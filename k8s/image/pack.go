package main

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// The properties of the image. k8s/Dockerfile describes the same image.
const (
	binaryPath = "/crawlbatch"
	user       = "65532:65532" // user and group as numbers, so that Kubernetes can check runAsNonRoot
)

// machines maps the supported architectures to their ELF machines.
var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

// check returns an error for a binary that would not start in an otherwise empty image.
func check(binary []byte, arch string) error {
	machine, known := machines[arch]
	if !known {
		return fmt.Errorf("-arch %q: it must be amd64 or arm64", arch)
	}
	f, err := elf.NewFile(bytes.NewReader(binary))
	if err != nil {
		return fmt.Errorf("not a Linux binary: %w", err)
	}
	if f.Machine != machine {
		return fmt.Errorf("the binary is for %s, not for %s", f.Machine, arch)
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return errors.New("the binary is not static: build it with CGO_ENABLED=0")
		}
	}
	return nil
}

// pack returns an image of one layer, which holds the binary.
func pack(binary []byte, arch string) (v1.Image, error) {
	files, err := archive(binary)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(files)), nil })
	if err != nil {
		return nil, fmt.Errorf("layer: %w", err)
	}
	img, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return nil, fmt.Errorf("image: %w", err)
	}
	file, err := img.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("image: %w", err)
	}
	file = file.DeepCopy()
	file.OS, file.Architecture = "linux", arch
	file.Created = v1.Time{Time: time.Unix(0, 0).UTC()}
	file.Config = v1.Config{User: user, Entrypoint: []string{binaryPath}}
	img, err = mutate.ConfigFile(img, file)
	if err != nil {
		return nil, fmt.Errorf("image: %w", err)
	}
	return img, nil
}

// archive returns the image's layer as a tar archive. All users may read and run the binary in it, but only
// root may change it.
func archive(binary []byte) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	h := &tar.Header{Typeflag: tar.TypeReg, Name: binaryPath[1:], Mode: 0o755, Size: int64(len(binary)), ModTime: time.Unix(0, 0), Format: tar.FormatUSTAR}
	if err := w.WriteHeader(h); err != nil {
		return nil, fmt.Errorf("layer: %w", err)
	}
	if _, err := w.Write(binary); err != nil {
		return nil, fmt.Errorf("layer: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("layer: %w", err)
	}
	return b.Bytes(), nil
}
