// Package secrets builds the redactor of a program from its settings, its environment and its store.
package secrets

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/keyfile"
	"github.com/passbook-run/passbook/internal/redact"
	"github.com/passbook-run/passbook/internal/store"
)

// markKey is the name under which a store keeps the key of its marks. With the run directory alone, secrets cannot be
// tried against the marks.
const markKey = "keys/redaction"

// New returns a redactor of the secrets that the settings name. It takes the values of variables from environ. The key
// of the marks is that of the settings' store; it is read, or created, when the first secret is found.
func New(settings config.Settings, environ []string) (*redact.Redactor, error) {
	var mu sync.Mutex
	var key []byte
	r, err := redact.New(redact.Options{
		Environ:  slices.DeleteFunc(slices.Clone(environ), Own),
		Names:    settings.Redact.Env,
		Patterns: settings.Redact.Patterns,
		Key: func() ([]byte, error) {
			mu.Lock()
			defer mu.Unlock()
			var err error
			if key == nil {
				key, err = keyOf(settings.Store)
			}
			return key, err
		},
	})
	if err != nil {
		return nil, fmt.Errorf("settings: redact.patterns: %w", err)
	}
	LearnKeys(r, settings)
	return r, nil
}

// LearnKeys adds the keys of this host and its cluster that exist: KEY.key in the state directory, and
// console.link_key_file. An unreadable one is left to the program that uses it.
func LearnKeys(r *redact.Redactor, settings config.Settings) {
	paths := []string{settings.Console.LinkKeyFile}
	if entries, err := os.ReadDir(settings.StateDir); err == nil {
		for _, e := range entries {
			if e.Type().IsRegular() && strings.HasSuffix(e.Name(), ".key") {
				paths = append(paths, filepath.Join(settings.StateDir, e.Name()))
			}
		}
	}
	for _, path := range paths {
		if key, err := (keyfile.File{Path: path}).ReadAny(); err == nil {
			r.LearnKey(strings.ReplaceAll(filepath.Base(path), ".", "-"), key)
		}
	}
}

// keyOf reads the key of a store's marks, and creates it if there is none.
func keyOf(url string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	s, err := store.Open(ctx, url)
	if err != nil {
		return nil, err
	}
	return StoreKey(ctx, s)
}

// StoreKey returns the key of a store, and creates it if there is none. Marks and accounts are digests under it.
func StoreKey(ctx context.Context, s *store.Store) ([]byte, error) {
	key, err := s.ReadName(ctx, markKey)
	if !errors.Is(err, store.ErrMissing) {
		return key, err
	}
	fresh := make([]byte, 32)
	if _, err := rand.Read(fresh); err != nil {
		return nil, err
	}
	if _, err := s.Create(ctx, markKey, fresh); err != nil {
		return nil, err
	}
	return s.ReadName(ctx, markKey) // if two create it at once, one of them wins
}

// Own reports whether a variable NAME=VALUE is one of Passbook's own, which name keys and hold none.
func Own(pair string) bool { return strings.HasPrefix(pair, "PASSBOOK_") }
