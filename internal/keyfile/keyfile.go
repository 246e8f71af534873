// Package keyfile makes and reads the keys of a host: files of 32 random bytes in Base64 in the state directory.
//
// Any number of programs that make a key at once get the same one, and it is on disk before the first of them uses it.
// A key that another user could have read or written is refused: who has it can act in the name of its owner. The
// package does not know what a key is for.
package keyfile

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/passbook-run/passbook/internal/disk"
)

// Size is the number of bytes of a key.
const Size = 32

// maxFile is the size of a file that can be a key.
const maxFile = 4096

// File is the file of a key.
type File struct {
	Path string
	// Replace completes an error: what the user does to get another key, as in "remove it to create another key".
	Replace string
}

// Load returns the key of this user. The first call makes it, with mode 0600.
func (f File) Load() ([]byte, error) {
	if err := f.create(); err != nil {
		return nil, err
	}
	fi, err := os.Lstat(f.Path)
	if err != nil {
		return nil, err
	}
	if mode := fi.Mode().Perm(); fi.Mode().IsRegular() && mode&0o077 != 0 {
		return nil, fmt.Errorf("%s can be read by other users (mode %04o): %s", f.Path, mode, f.Replace)
	}
	text, err := disk.ReadFile(f.Path, maxFile)
	if kind := (*disk.KindError)(nil); errors.As(err, &kind) {
		return nil, fmt.Errorf("%s is %s: %s", f.Path, kind.Kind, f.Replace)
	}
	if err != nil {
		return nil, err
	}
	return f.decode(text)
}

func (f File) create() error {
	if _, err := os.Lstat(f.Path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	text, err := New()
	if err != nil {
		return err
	}
	if err := (disk.Disk{}).Mkdir(filepath.Dir(f.Path), 0o700); err != nil {
		return err
	}
	_, err = disk.Disk{}.CreateExclusive(f.Path, []byte(text+"\n"), 0o600)
	return err
}

// Read returns a key that hosts share. Owner and mode are those that the user or an orchestrator chose; a key that every
// user of this host could have written is refused.
func (f File) Read() ([]byte, error) {
	fi, err := os.Stat(f.Path)
	if err != nil {
		return nil, err
	}
	if mode := fi.Mode().Perm(); mode&0o002 != 0 {
		return nil, fmt.Errorf("%s can be written by every user (mode %04o): %s", f.Path, mode, f.Replace)
	}
	return f.ReadAny()
}

// ReadAny returns a key with any mode: for what hides keys.
func (f File) ReadAny() ([]byte, error) {
	text, err := os.ReadFile(f.Path)
	if err != nil {
		return nil, err
	}
	return f.decode(text)
}

func (f File) decode(text []byte) ([]byte, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(key) != Size {
		return nil, fmt.Errorf("%s does not contain %d bytes in Base64: %s", f.Path, Size, f.Replace)
	}
	return key, nil
}

// New returns a random key in Base64.
func New() (string, error) {
	fresh := make([]byte, Size)
	if _, err := rand.Read(fresh); err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString(fresh), nil
}
