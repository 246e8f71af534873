package codec

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/passbook-run/passbook/config"
)

// SettingsError is an error in the settings of a codec. It contains no key.
type SettingsError struct{ Cause error }

func (e *SettingsError) Error() string { return "settings: codec.keys: " + e.Cause.Error() }

func (e *SettingsError) Unwrap() error { return e.Cause }

// Load returns the codec of the settings. getenv looks up variables. The error is a [SettingsError] that lists
// everything that is wrong.
func Load(s config.Codec, getenv func(string) string) (*Codec, error) {
	keys := map[string][]byte{}
	var errs []error
	for _, entry := range s.Keys {
		id, ref, ok := strings.Cut(entry, "=")
		if !ok || id == "" {
			errs = append(errs, errors.New("invalid entry: want id=env:NAME or id=file:PATH"))
			continue
		}
		if _, twice := keys[id]; twice {
			errs = append(errs, fmt.Errorf("duplicate key %q", id))
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
		return nil, errors.New("not base64; run \"starter codec key\" to create one")
	}
	if len(key) != KeySize {
		return nil, fmt.Errorf("it has %d bytes; AES-256 needs %d; run \"starter codec key\" to create one", len(key),
			KeySize)
	}
	return key, nil
}

// Secret returns the value of env:NAME or file:PATH without surrounding white space.
func Secret(ref string, getenv func(string) string) (string, error) {
	kind, where, _ := strings.Cut(ref, ":")
	switch kind {
	case "env":
		if text := strings.TrimSpace(getenv(where)); text != "" {
			return text, nil
		}
		return "", fmt.Errorf("variable %s is not set", where)
	case "file":
		raw, err := os.ReadFile(where)
		if err != nil {
			return "", err
		}
		return strings.TrimSpace(string(raw)), nil
	}
	return "", errors.New("want env:NAME or file:PATH: settings must not contain the secret itself")
}
