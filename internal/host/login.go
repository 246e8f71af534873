package host

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/keyfile"
)

// LinkLife is how long a one-time link of the Web UI can be opened.
const LinkLife = 12 * time.Hour

// LoginLink returns a link to a page of the Web UI that logs a browser in, once.
func (s Server) LoginLink(page string) (string, error) {
	token, err := NewLink(filepath.Join(s.Login, "links"), time.Now(), LinkLife)
	if err != nil {
		return "", fmt.Errorf("make a link to the Web UI: %w", err)
	}
	q := url.Values{"token": {token}}
	if page != "" {
		q.Set("next", page)
	}
	return s.UI + "/login?" + q.Encode(), nil
}

// NewLink makes a one-time link in a folder: a file that only the owner writes, named by the SHA-256 of the secret, with
// the time of expiry. It removes links that can no longer be opened.
func NewLink(dir string, now time.Time, life time.Duration) (secret string, err error) {
	if err := (disk.Disk{}).Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	if err := forgetExpired(dir, now); err != nil {
		return "", err
	}
	secret = rand.Text()
	sum := sha256.Sum256([]byte(secret))
	until := now.Add(life).UTC().Format(time.RFC3339) + "\n"
	return secret, disk.Disk{}.WriteFile(filepath.Join(dir, hex.EncodeToString(sum[:])), []byte(until), 0o600)
}

// forgetExpired removes links that can no longer be opened.
func forgetExpired(dir string, now time.Time) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		text, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) || disk.IsTemp(e.Name()) {
			continue
		}
		until, parseErr := time.Parse(time.RFC3339, strings.TrimSpace(string(text)))
		if err == nil && (parseErr != nil || now.After(until)) {
			err = os.Remove(path)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// CodecTokenFile is the file of [CodecToken].
func CodecTokenFile(stateDir string) string { return filepath.Join(stateDir, "codec-token") }

// CodecToken returns the file with the token of the codec endpoint, which it makes if it is missing: without a token
// every user of this machine could have payloads decrypted.
func CodecToken(stateDir string) (string, error) {
	f := keyfile.File{Path: CodecTokenFile(stateDir), Replace: "remove it to create another token"}
	if _, err := f.Load(); err != nil {
		return "", fmt.Errorf("read the token of the codec endpoint: %w", err)
	}
	return f.Path, nil
}
