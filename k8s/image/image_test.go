package main

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// static builds a small static binary whose header says that it is for a machine. It returns the path.
func static(t *testing.T, machine elf.Machine) string {
	t.Helper()
	dir := t.TempDir()
	source := filepath.Join(dir, "main.go")
	if err := os.WriteFile(source, []byte("package main\n\nfunc main() { println(\"here\") }\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "bin")
	cmd := exec.Command("go", "build", "-o", out, source)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, text)
	}
	body, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	binary.LittleEndian.PutUint16(body[18:], uint16(machine))
	if err := os.WriteFile(out, body, 0o755); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestTheImageIsTheBinaryAloneAndTheSameEachTime(t *testing.T) {
	binary := static(t, elf.EM_AARCH64)
	var archives [][]byte
	for range 2 {
		out := filepath.Join(t.TempDir(), "image.tar")
		if err := run(options{binary: binary, arch: "arm64", tag: "registry.example/crawlbatch:v1", out: out}); err != nil {
			t.Fatal(err)
		}
		body, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		archives = append(archives, body)
	}
	if !bytes.Equal(archives[0], archives[1]) {
		t.Error("two archives of one binary differ")
	}

	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(archives[0])), nil }
	names, err := tarball.LoadManifest(open)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"registry.example/crawlbatch:v1"}, names[0].RepoTags); diff != "" {
		t.Errorf("tags (-want +got):\n%s", diff)
	}
	img, err := tarball.Image(open, nil)
	if err != nil {
		t.Fatal(err)
	}
	file, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	got := []any{file.OS, file.Architecture, file.Config.User, file.Config.Entrypoint, file.Created.Unix()}
	if diff := cmp.Diff([]any{"linux", "arm64", "65532:65532", []string{"/crawlbatch"}, int64(0)}, got); diff != "" {
		t.Errorf("config (-want +got):\n%s", diff)
	}
	layers, err := img.Layers()
	if err != nil {
		t.Fatal(err)
	}
	if len(layers) != 1 {
		t.Fatalf("%d layers, want 1", len(layers))
	}
	content, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	want, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	r := tar.NewReader(content)
	h, err := r.Next()
	if err != nil {
		t.Fatal(err)
	}
	if body, err := io.ReadAll(r); err != nil || !bytes.Equal(body, want) {
		t.Errorf("%s is not the binary (%v)", h.Name, err)
	}
	if h.Name != "crawlbatch" || h.Mode != 0o755 || h.Uid != 0 || h.ModTime.Unix() != 0 {
		t.Errorf("the file is %s, mode %o, of user %d, of %s", h.Name, h.Mode, h.Uid, h.ModTime)
	}
	if h, err := r.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("the layer has a second file: %v, %v", h, err)
	}
}

func TestWhatWouldNotStartIsRefused(t *testing.T) {
	dynamic, err := exec.LookPath("sh")
	if err != nil {
		t.Fatal(err)
	}
	text := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(text, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, binary, arch, tag, want string }{
		{"another architecture", static(t, elf.EM_X86_64), "arm64", "crawl:b", "the binary is for EM_X86_64, not for arm64"},
		{"a dynamic binary", dynamic, runtime.GOARCH, "crawl:b", "CGO_ENABLED=0"},
		{"no binary", text, "amd64", "crawl:b", "not a Linux binary"},
		{"an architecture nobody knows", text, "z80", "crawl:b", "it must be amd64 or arm64"},
		{"a tag that is none", text, "amd64", "A:B", `-tag "A:B"`},
		{"a file that is not there", text + "s", "amd64", "crawl:b", "no such file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "image.tar")
			err := run(options{binary: c.binary, arch: c.arch, tag: c.tag, out: out})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q in it", err, c.want)
			}
			if _, err := os.Stat(out); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("an archive was written despite the error (%v)", err)
			}
		})
	}
}

// The Dockerfile must describe the same image as package image.
func TestTheDockerfileSaysTheSame(t *testing.T) {
	body, err := os.ReadFile("../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	_, last, ok := strings.Cut(string(body), "\nFROM scratch\n")
	if !ok {
		t.Fatal("its last stage is not FROM scratch")
	}
	for _, want := range []string{"USER " + user + "\n", `ENTRYPOINT ["` + binaryPath + `"]` + "\n", " " + binaryPath + " " + binaryPath + "\n"} {
		if !strings.Contains(last, want) {
			t.Errorf("the last stage lacks %q:\n%s", want, last)
		}
	}
	if build := "make build VERSION=$VERSION BIN=\n"; !strings.Contains(string(body), build) {
		t.Errorf("it does not build %s with %q", binaryPath, build)
	}
}
