package codec

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/passbook-run/passbook/config"
)

// SettingsError says what is wrong with the settings of a codec. It names no key.
type SettingsError struct{ Cause error }

func (e *SettingsError) Error() string { return "settings: codec.keys: " + e.Cause.Error() }

func (e *SettingsError) Unwrap() error { return e.Cause }

// Load makes the codec of the settings. getenv looks variables up. The error is a [SettingsError] and names everything that is wrong.
func Load(s config.Codec, getenv func(string) string) (*Codec, error) {
	keys := map[string][]byte{}
	var errs []error
	for _, entry := range s.Keys {
		id, ref, ok := strings.Cut(entry, "=")
		if !ok || id == "" {
			errs = append(errs, errors.New("an entry is no id=env:NAME and no id=file:PATH"))
			continue
		}
		if _, twice := keys[id]; twice {
			errs = append(errs, fmt.Errorf("key %q is there twice", id))
			continue
		}
		key, err := keyAt(ref, getenv)
		if err != nil {
			errs = append(errs, fmt.Errorf("key %q: %w", id, err))
			continue
		}
		keys[id] = key
	}
	if err := errors.Join(errs...); err != nil {
		return nil, &SettingsError{err}
	}
	c, err := New(s.Key, keys)
	if err != nil {
		return nil, &SettingsError{err}
	}
	return c, nil
}

func keyAt(ref string, getenv func(string) string) ([]byte, error) {
	text, err := Secret(ref, getenv)
	if err != nil {
		return nil, err
	}
	key, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, errors.New("it is not base64; `starter codec key` makes one")
	}
	if len(key) != KeySize {
		return nil, fmt.Errorf("it has %d bytes; AES-256 takes %d: `starter codec key` makes one", len(key), KeySize)
	}
	return key, nil
}

// Secret gives what env:NAME or file:PATH refers to, without white space around it.
func Secret(ref string, getenv func(string) string) (string, error) {
	kind, where, _ := strings.Cut(ref, ":")
	switch kind {
	case "env":
		if text := strings.TrimSpace(getenv(where)); text != "" {
			return text, nil
		}
		return "", fmt.Errorf("the variable %s is not set", where)
	case "file":
		raw, err := os.ReadFile(where)
		if err != nil {
			return "", err
		}
		return strings.TrimSpace(string(raw)), nil
	}
	return "", errors.New("write env:NAME or file:PATH: a secret has no place in the settings themselves")
}
