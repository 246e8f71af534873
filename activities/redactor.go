package activities

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/redact"
	"github.com/passbook-run/passbook/store"
)

// markKey is the name under which a store keeps the key of its marks. Who has only the directory of a run cannot try secrets out on the marks.
const markKey = "keys/redaction"

// NewRedactor hides what the settings take for secrets. environ is where the values of variables are looked up. The key of the marks is that of the
// settings' store; it is read, or made, when the first secret is met. Passbook's own variables name keys and hold none.
func NewRedactor(settings config.Settings, environ []string) (*redact.Redactor, error) {
	var mu sync.Mutex
	var key []byte
	r, err := redact.New(redact.Options{
		Environ: slices.DeleteFunc(slices.Clone(environ), passbooks), Names: settings.Redact.Env, Patterns: settings.Redact.Patterns,
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
	return r, nil
}

// keyOf reads the key of a store's marks. The first who wants it makes it.
func keyOf(url string) (key []byte, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	s, err := store.Open(ctx, url)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	key, err = s.ReadName(ctx, markKey)
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
	return s.ReadName(ctx, markKey) // of two who make it at once, one wins
}
