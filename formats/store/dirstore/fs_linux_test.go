package dirstore

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/formats/store"
)

func TestSharedFileSystemsAreNamed(t *testing.T) {
	for magic, want := range map[uint32]string{
		0x6969: "NFS", 0x65735546: "FUSE", 0xff534d42: "SMB", 0x01021997: "9P",
		0xef53: "", 0x01021994: "", 0x9123683e: "", 0x58465342: "", 0x794c7630: "", // magic numbers of ext4, tmpfs, btrfs, XFS and overlay
	} {
		if got := sharedMagic(magic); got != want {
			t.Errorf("sharedMagic(%#x) = %q, want %q", magic, got, want)
		}
	}
}

func TestSharedFileSystemIsRefusedUnlessOneMachineIsDeclared(t *testing.T) {
	s := openDir(t, t.TempDir())
	s.fileSystem = func(string) (string, error) { return "NFS", nil }
	_, err := store.CreateBytes(t.Context(), s, "k", []byte("x"))
	if !errors.Is(err, store.ErrUnsupported) || !strings.Contains(err.Error(), "is on NFS") {
		t.Fatalf("Create on NFS: %v", err)
	}
	s.options.OneMachine = true
	if _, err := store.CreateBytes(t.Context(), s, "k", []byte("x")); err != nil {
		t.Fatalf("Create on NFS of one machine: %v", err)
	}
}

func TestFolderWithoutPermissionIsDenied(t *testing.T) {
	root := t.TempDir()
	s := openDir(t, filepath.Join(root, "data"))
	if os.Geteuid() == 0 {
		s.root, s.anchor = "/sys/kernel/data", "/sys/kernel" // a folder in which even the root user cannot write
		s.fileSystem = func(string) (string, error) { return "", nil }
	} else if err := os.Chmod(root, 0o555); err != nil {
		t.Fatal(err)
	}
	_, err := store.CreateBytes(t.Context(), s, "k", []byte("x"))
	if !errors.Is(err, store.ErrDenied) {
		t.Fatalf("Create below a folder that cannot be written: %v", err)
	}
}

func TestTheKernelsFileSystemsAreRefused(t *testing.T) {
	for _, root := range []string{"/proc/x", "/sys/kernel/data"} {
		_, err := Open(root, Options{OneMachine: true})
		if !errors.Is(err, store.ErrDenied) || !strings.Contains(err.Error(), "keeps no files") {
			t.Errorf("%s: %v", root, err)
		}
	}
}
