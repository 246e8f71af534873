package disk

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"

	json2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	json1 "github.com/go-json-experiment/json/v1"
)

// ErrDamaged marks a file that cannot be parsed.
var ErrDamaged = errors.New("damaged")

// present ignores that a file is missing.
func present(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// ReadRaw returns the bytes of a file; nil if it is missing.
func (f Folder) ReadRaw(name string) ([]byte, error) {
	raw, err := f.ReadFile(name)
	return raw, present(err)
}

// DigestOf returns the sha-256 of a file; empty if it is missing.
func (f Folder) DigestOf(name string) (string, error) {
	file, err := f.OpenFile(name)
	if err != nil {
		return "", present(err)
	}
	defer Close(file)
	h := sha256.New()
	_, err = io.Copy(h, file)
	return hex.EncodeToString(h.Sum(nil)), explain(err, "read", file.Name())
}

// Entries returns the names in a folder; none if it is missing.
func (f Folder) Entries(name string) (names []string, err error) {
	all, err := f.ReadDir(name)
	for _, e := range all {
		names = append(names, e.Name())
	}
	return names, present(err)
}

// ReadJSON decodes a file. The error is [ErrDamaged] if it cannot be parsed.
func (f Folder) ReadJSON(name string, v any) error {
	raw, err := f.ReadFile(name)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return fmt.Errorf("%s is %w: %v", f.Path(name), ErrDamaged, err)
	}
	return nil
}

func Digest(raw []byte) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// Marshal encodes JSON as encoding/json does, with indentation, unescaped HTML characters and one line feed at the end. It
// takes half of the time: it encodes and indents in one pass.
func Marshal(v any) ([]byte, error) {
	raw, err := json2.Marshal(v, json1.DefaultOptionsV1(), jsontext.EscapeForHTML(false), jsontext.WithIndent("  "))
	if err != nil {
		return nil, err
	}
	return append(raw, '\n'), nil
}

func Missing(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrDamaged) }

// Lost reports whether an error means that the store lacks a blob or has other bytes.
func Lost(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid) }
